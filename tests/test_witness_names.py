"""Nobody outside ``witnesses/`` knows a witness by its name: what is true of one, it declares."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from analyzer.ingest.envelope import LAYERS
from analyzer.schema import FaultKind, Modes
from analyzer.tables.programs import PROGRAMS
from analyzer.witness import witnesses

ROOT = Path(__file__).parents[1] / "analyzer"
# Words of other vocabularies that happen to be names of witnesses too.
OTHER_WORDS = (
    {row.name for row in PROGRAMS}
    | {layer.name for layer in LAYERS}
    | set(get_args(FaultKind))
    | set(Modes.__struct_fields__)
)
ALLOWED = {
    "parse/oom_text.py": "starts of oom.lark",
    "incident/asserts.py": "asks for the tools, is to ask for Witness.tool",
    "incident/cut_names.py": "asks for device-side witnesses, is to ask for Witness.device_side",
    "incident/host_kills.py": "is to ask is_unexplained",
    "incident/roles.py": "is to ask is_unexplained",
    "incident/stopped.py": "is to ask for Witness.launcher",
    "values/faults.py": "is to ask value_printer",
    "verdict/exact.py": "is to ask is_unexplained",
    "verdict/printed_values.py": "is to ask for Witness.value_printer",
    "verdict/read_back.py": "is to ask for Witness.value_printer",
}


def _literals(source: str) -> set[str]:
    """Names of witnesses that stand as literals, the names of grammars apart."""
    tree = ast.parse(source)
    grammars = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(getattr(to, "id", "") == "GRAMMAR" for to in node.targets)
    }
    names = {witness.name for witness in witnesses()} - OTHER_WORDS
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {str(node.value) for node in constants if node.value in names and id(node) not in grammars}


def _compared(source: str) -> list[int]:
    """Lines that compare the witness of a record with a constant, whatever the word."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        asked = any(isinstance(side, ast.Attribute) and side.attr == "witness" for side in sides)
        if asked and any(_is_constant(side) for side in sides):
            found.append(node.lineno)
    return found


def _is_constant(node: ast.expr) -> bool:
    named = isinstance(node, ast.Name) and node.id.isupper()
    return named or any(isinstance(part, ast.Constant) for part in ast.walk(node))


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "witnesses"],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_no_name_of_a_witness_is_a_literal(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    if path.relative_to(ROOT).as_posix() not in ALLOWED:
        assert not _literals(source)
        assert not _compared(source)


@pytest.mark.parametrize(
    "source", ['if fault.witness == "vllm": pass', "x = fault.witness in _NAMES", 'y = "max_errors"']
)
def test_the_test_finds_them(source: str) -> None:
    assert _literals(source) or _compared(source)

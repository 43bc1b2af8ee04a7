"""The seeded program, as far as a machine without a GPU can look at it."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.gpu.seeded.kinds import KINDS

PROGRAM = Path(__file__).with_name("seeded") / "program.py"


def test_each_kind_tells_the_truth_right_above_its_fault() -> None:
    """Every kind is a function of the program that calls ``guilty`` once: the truth is the line below."""
    functions = {
        node.name: node
        for node in ast.parse(PROGRAM.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    for kind in KINDS:
        calls = [
            one
            for one in ast.walk(functions[kind])
            if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "guilty"
        ]
        assert len(calls) == 1, kind

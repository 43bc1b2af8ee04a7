"""Numbers of log text are read in one place: ASCII digits, a largest length, finite."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import analyzer
from analyzer import numbers
from analyzer.grammar import GrammarError, data_path
from analyzer.numbers import (
    MAX_INTEGER,
    MAX_SIZE_BYTES,
    hexadecimal,
    integer,
    is_digits,
    natural,
    need_bytes,
    need_integer,
    need_real,
    printed_value,
    real,
)

PACKAGE = Path(analyzer.__file__).parent
# Modules that read log text. `replay`, `record` and `cli` read options, environment and their own files.
READERS = (
    "advice", "incident", "ingest", "parse", "suspects", "tables", "timeline", "values", "verdict", "window",
    "witnesses",
)  # fmt: skip
BARE = {"int", "float", "Decimal", "Fraction", "complex"}
METHODS = {"isdigit", "isdecimal", "isnumeric", "fromhex"}
# Stages that see frames and records only: a cell of a frame is a number, and the type checker wants int().
ON_FRAMES = ("incident", "suspects", "timeline", "values", "verdict", "window")
CELLS = re.compile(
    r"str\((?:row|proof|reported)\[.*\]\)"  # a cell that the type checker knows as object
    r"|str\(row\['completion_line'\] or line\)"
    r"|.*\[.*\](?:\.(?:min|max|sum)\(\))?(?: or 0)?"  # ops["line"][0], part["step"].max() or 0
    r"|known\.(?:min|max)\(\)|kernels\.launches\..*\.item\(\)"
)
# Other calls, by module and argument, with the reason.
ALLOWED = {
    ("values/launches.py", "value"): "a float that was read",
    ("incident/earlier_runs.py", "line"): "a line number of a frame",
    ("values/blocking.py", "first"): "a line number of a frame",
    ("values/bad_indices.py", "extent"): "an int that was read",
    ("window/borders.py", "begin"): "a line number of a frame",
    ("incident/explanation.py", "is_unexplained(record)"): "a truth value",
    ("incident/root_of_process.py", "is_unexplained(record)"): "a truth value",
    ("timeline/steps.py", "period"): "a step number of a frame",
    ("ingest/envelope.py", "code"): "four hexadecimal digits of an escape that a pattern found",
    ("ingest/lines.py", "total.item()"): "a count of lines",
    ("ingest/load.py", "known['code'].max() or 0"): "the number of a category",
    ("witnesses/vllm.py", "lines[0]"): "a line number of a frame",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for folder in READERS:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())


def number_calls(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, function and first argument of each call that reads a number from anything."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if node.args and isinstance(node.args[0], (ast.Compare, ast.BoolOp)):
            continue  # a bool
        argument = ast.unparse(node.args[0]) if node.args else ""
        if isinstance(node.func, ast.Name) and node.func.id in BARE:
            yield node.lineno, node.func.id, argument
        elif isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            yield node.lineno, node.func.attr, argument


def is_allowed(name: str, argument: str) -> bool:
    on_frames = name.startswith(ON_FRAMES) and CELLS.fullmatch(argument) is not None
    return on_frames or (name, argument) in ALLOWED


def test_only_the_reader_of_numbers_reads_numbers() -> None:
    """A new witness uses ``analyzer.numbers``; ``int`` of a text ends an analysis sooner or later."""
    found = [
        f"{name}:{line}: {function}({argument})"
        for name, tree in modules()
        for line, function, argument in number_calls(tree)
        if function in METHODS or not is_allowed(name, argument)
    ]
    assert not found, found


@pytest.mark.parametrize(
    "call",
    ["int(text)", "float(one)", "x.isdigit()", "int(fields.get('INT'))", "Decimal(t)", "int(fields['INT'])"],
)
def test_the_search_finds_such_calls(call: str) -> None:
    """Or the test above could not fail."""
    ((_, function, argument),) = number_calls(ast.parse(call))
    assert function in METHODS or not is_allowed("witnesses/new.py", argument)


def test_no_pattern_takes_digits_of_other_scripts() -> None:
    r"""``\d`` matches the digits of all scripts, in Python, Polars and Lark alike."""
    patterns = [
        (name, node.lineno, node.value)
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    prose = {(name, docstring) for name, tree in modules() for docstring in _docstrings(tree)}
    texts = [(name, line, text) for name, line, text in patterns if (name, text) not in prose]
    for path in sorted(data_path("grammars").glob("*.lark")):
        texts += [(path.name, n, line) for n, line in enumerate(path.read_text().splitlines(), start=1)]
    assert not [one for one in texts if re.search(r"(?<!\\)(?:\\\\)*(?<!\\W)\\d", one[2])]


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield str(first.value.value)


REFUSED = (
    "",
    "\u00b2",
    "\u2460",
    "\u0663",
    "\uff11",
    "1_0",
    " 1",
    "1 ",
    "1\n",
    "0x1",
    "1e3",
    "nan",
    "9" * 21,
    "9" * 4301,
)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_decimal_number_is_null(text: str) -> None:
    """Never an exception, and never a number that no program meant."""
    assert integer(text) is None
    assert natural(text) is None
    with pytest.raises(GrammarError, match="a number that fits 64 bits"):
        need_integer(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("-5", -5), ("+5", 5), (str(MAX_INTEGER), MAX_INTEGER), (str(-(2**63)), -(2**63))],
)
def test_what_fits_64_bits_is_a_number(text: str, number: int) -> None:
    """Signed or not: C++ prints -1 as the largest unsigned number."""
    assert integer(text) == need_integer(text) == number


@pytest.mark.parametrize("text", [str(2**64), str(-(2**63) - 1), "9" * 20])
def test_what_fits_no_64_bits_is_null(text: str) -> None:
    assert integer(text) is None


def test_a_largest_value_bounds_both_signs() -> None:
    assert integer("7", most=7) == 7
    assert integer("8", most=7) is integer("-8", most=7) is None


def test_a_natural_number_has_no_sign() -> None:
    assert natural("7") == 7
    assert natural("-7") is natural("+7") is natural(None) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("0x1F", 31), ("ff", 255), ("-0x1", -1), ("f" * 16, 2**64 - 1), ("f" * 17, None), ("g", None)],
)
def test_hexadecimal_numbers_have_at_most_16_digits(text: str, number: int | None) -> None:
    assert hexadecimal(text) == number


@pytest.mark.parametrize(
    "text", [*REFUSED[:6], "1e999", "-1e999", "9" * 401, "inf", "nan", ".", "e5", "1e9999999999"]
)
def test_what_is_no_finite_number_is_null(text: str) -> None:
    assert real(text) is None
    with pytest.raises(GrammarError):
        need_real(text)


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1.0), ("-.5", -0.5), ("2.", 2.0), ("1e3", 1000.0), ("9" * 300, 1e300)]
)
def test_a_decimal_fraction_is_a_number(text: str, number: float) -> None:
    assert real(text) == pytest.approx(number)


def test_a_printed_value_can_be_nan_or_infinite() -> None:
    """The program says so, and that is what is looked for."""
    assert printed_value("-inf") == float("-inf")
    assert str(printed_value("nan")) == "nan"
    with pytest.raises(GrammarError):
        printed_value("infinity")


@pytest.mark.parametrize("text", ["-1", "9" * 30, "1e300", "1e-999x"])
def test_no_memory_is_that_large(text: str) -> None:
    with pytest.raises(GrammarError):
        need_bytes(text, 2**30)


def test_a_size_is_its_number_times_its_unit() -> None:
    assert need_bytes("1.5", 2**30) == 3 * 2**29
    assert need_bytes(str(MAX_SIZE_BYTES), 1) == MAX_SIZE_BYTES


def test_an_error_shows_only_the_beginning_of_a_long_text() -> None:
    assert len(str(numbers.NumberError("9" * 1_000_000))) < 300


def test_digits_are_ascii() -> None:
    assert is_digits("0123456789")
    assert not any(map(is_digits, ("", "-1", "1.0", "\u00b2", "\u0663", None)))

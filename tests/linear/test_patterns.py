"""No pattern of the package and no terminal of a grammar takes more than linear time."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.linear.adversary import texts
from tests.linear.found import Found, patterns
from tests.linear.measure import growth

ALL = patterns()
TERMINALS = [one for one in ALL if ".lark " in one.where]
EXPRESSIONS = [one for one in ALL if ".lark " not in one.where]


def _slow(one: Found, *, many: bool) -> str | None:
    compiled = re.compile(one.pattern, one.flags)
    for mode in one.modes:
        run = _call(compiled, mode)
        for text in texts(one.pattern, one.flags, many=many):
            if found := growth(run, text):
                return f"{one.where} {mode} {text(30)!r}: {found}"
    return None


def _call(compiled: re.Pattern[str], mode: str) -> Callable[[str], object]:
    if mode in ("sub", "subn"):
        return lambda text: getattr(compiled, mode)("", text)
    if mode == "finditer":
        return lambda text: sum(1 for _ in compiled.finditer(text))
    run: Callable[[str], object] = getattr(compiled, mode)
    return run


def test_the_generator_finds_a_quadratic_pattern() -> None:
    """A blank run behind a lazy one is what ``device_assert`` had."""
    slow = Found(where="made", pattern=r"[^\s][^\n]*?(?=\s*$)", flags=0, modes=("match",))
    assert _slow(slow, many=False)


def test_the_generator_finds_an_exponential_pattern() -> None:
    """Such a call never ends: the deadline does."""
    slow = Found(where="made", pattern=r"(?:a+)+$", flags=0, modes=("match",))
    assert _slow(slow, many=False)


def test_each_terminal_is_linear() -> None:
    """A terminal is matched where the lexer stands, over as much of a line as a stranger wrote."""
    assert [found for one in TERMINALS if (found := _slow(one, many=False))] == []


@pytest.mark.heavy
def test_each_terminal_is_linear_over_more_shapes() -> None:
    """The same with more characters and more ends."""
    assert [found for one in TERMINALS if (found := _slow(one, many=True))] == []


@pytest.mark.parametrize(
    ("pattern", "mode"),
    [
        (r"(?:_(?:embedding|index_select|index|select|t))+", "fullmatch"),  # two ways to read one text
        (r"(?<![_.#]\d)(?:[_.#]\d++)++(?=$|_async$)", "sub"),  # a start in each number of a run
        (r"[\w.$:]+$", "search"),
        (r"tensor\((.*?)(?:,\s+device=.*)?\)$", "search"),
        (r"/cuda(?:[-_]?[0-9.]+)?/(?:[^:]+/)?include/", "search"),
    ],
)
def test_the_generator_finds_what_the_package_once_had(pattern: str, mode: str) -> None:
    """Also where a first glance at a small text is all that most patterns get."""
    assert _slow(Found(where="made", pattern=pattern, flags=0, modes=(mode,)), many=False)


def test_each_expression_is_linear() -> None:
    """Searches as well: one whose start can repeat begins again at each of them."""
    assert [found for one in EXPRESSIONS if (found := _slow(one, many=False))] == []

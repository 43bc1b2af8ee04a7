"""Texts that make a backtracking pattern work: made from its parse tree, not from what it is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from re import _constants as C  # noqa: N812 - short: it stands in each line
from re import _parser as parser
from typing import Any

_LONG = 200  # a repeat of at most so many cannot grow with the text
_MISSES = ("", "\x01", "\n", " ")
_NESTING = ("(", "[", "<", "{", "((a", "<a<", "[a, ", "'", '"', "\\")
_WORDS = "a0 _.:/-,x%A9=\t[(<{\"'\\é@#"

Tree = Sequence[tuple[Any, Any]]


def texts(pattern: str, flags: int, *, many: bool) -> Iterator[Callable[[int], str]]:
    """Functions from a size to a text of about that size.

    Args:
        pattern: The expression.
        flags: How it was compiled.
        many: More pumps and more ends; for the long run.
    """
    tree = list(parser.parse(pattern, flags & ~re.UNICODE))
    seen: set[tuple[str, str, str]] = set()
    for prefix, pump in [*_pumps(tree, "", many), *(("", one) for one in _NESTING)]:
        for miss in _MISSES if many else _MISSES[:2]:
            if pump and (prefix, pump, miss) not in seen:
                seen.add((prefix, pump, miss))
                yield _grown(prefix, pump, miss)


def _grown(prefix: str, pump: str, miss: str) -> Callable[[int], str]:
    return lambda size: prefix + pump * (size // len(pump)) + miss


def _pumps(tree: Tree, before: str, many: bool) -> Iterator[tuple[str, str]]:
    """(what stands before a repeat, what its body reads) for each repeat, and each prefix repeated."""
    start = before
    for op, value in tree:
        yield from _inner(op, value, before, many)
        before += example([(op, value)])
        if before != start and len(before) < _LONG:
            yield "", before


def _inner(op: Any, value: Any, before: str, many: bool) -> Iterator[tuple[str, str]]:
    if op in (C.MAX_REPEAT, C.MIN_REPEAT, C.POSSESSIVE_REPEAT):
        _, most, body = value
        if most == C.MAXREPEAT or most > _LONG:
            yield from ((before, one) for one in _bodies(body, many))
        yield from _pumps(list(body), before, many)
    elif op is C.SUBPATTERN:
        yield from _pumps(list(value[3]), before, many)
    elif op is C.ATOMIC_GROUP:
        yield from _pumps(list(value), before, many)
    elif op is C.BRANCH:
        for branch in value[1]:
            yield from _pumps(list(branch), before, many)
    elif op in (C.ASSERT, C.ASSERT_NOT):
        yield from _pumps(list(value[1]), before, many)


def _bodies(body: Any, many: bool) -> list[str]:
    items = list(body)
    if len(items) == 1 and items[0][0] in (C.IN, C.ANY, C.NOT_LITERAL, C.LITERAL):
        accepted = [char for char in _WORDS if _accepts(items[0], char)]
        return (accepted or [example(items)])[: 20 if many else 7]
    found = [example(items), example(items, times=2)]
    for at, (op, value) in enumerate(items):
        if op is C.BRANCH or (op is C.SUBPATTERN and list(value[3]) and next(iter(value[3]))[0] is C.BRANCH):
            branches = value[1] if op is C.BRANCH else next(iter(value[3]))[1][1]
            ends = example(items[:at]), example(items[at + 1 :])
            found.extend(example(list(branch)).join(ends) for branch in branches)
    return [one for one in dict.fromkeys(found) if one]


def _accepts(item: tuple[Any, Any], char: str) -> bool:
    op, value = item
    if op is C.ANY:
        return char != "\n"
    if op is C.LITERAL:
        return bool(char == chr(value))
    if op is C.NOT_LITERAL:
        return bool(char != chr(value))
    negated = bool(value) and value[0][0] is C.NEGATE
    return any(_in_set(one, char) for one in value if one[0] is not C.NEGATE) != negated


def _in_set(one: tuple[Any, Any], char: str) -> bool:
    op, value = one
    if op is C.LITERAL:
        return bool(ord(char) == value)
    if op is C.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    categories = {
        C.CATEGORY_DIGIT: char.isdigit(),
        C.CATEGORY_NOT_DIGIT: not char.isdigit(),
        C.CATEGORY_SPACE: char.isspace(),
        C.CATEGORY_NOT_SPACE: not char.isspace(),
        C.CATEGORY_WORD: char.isalnum() or char == "_",
        C.CATEGORY_NOT_WORD: not (char.isalnum() or char == "_"),
    }
    return bool(categories.get(value, False))


def example(tree: Tree, times: int = 1) -> str:
    """A short text that the tree reads (look-arounds apart), what has no limit ``times`` times."""
    return "".join(_example(op, value, times) for op, value in tree)


def _example(op: Any, value: Any, times: int) -> str:
    if op is C.LITERAL:
        return chr(value)
    if op in (C.IN, C.ANY, C.NOT_LITERAL):
        accepted = (
            char for char in [*_WORDS, *map(chr, range(32, 127)), "\n"] if _accepts((op, value), char)
        )
        return next(accepted, "a")
    if op in (C.MAX_REPEAT, C.MIN_REPEAT, C.POSSESSIVE_REPEAT):
        least = times if value[1] == C.MAXREPEAT else 0
        return str(example(list(value[2]), times) * max(value[0], least))
    if op is C.SUBPATTERN:
        return example(list(value[3]), times)
    if op is C.ATOMIC_GROUP:
        return example(list(value), times)
    if op is C.BRANCH:
        return example(list(value[1][0]), times)
    return ""

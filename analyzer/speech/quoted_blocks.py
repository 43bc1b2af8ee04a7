"""Strings of logged requests that go on over several lines: what a person pasted is not the server's text.

Only a string that is seen to close counts. Where its end is not in the log, the lines stay what they are: a
crash behind a cut record must not be lost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Protocol

import polars as pl

from analyzer.model import Line
from analyzer.speech.quoted_values import opens_string

_REACH = 500  # lines of one string; longer ones are documents, and their end is not looked for
_ERRORS = 1_000  # errors that are looked at: each costs the reading of the lines above it


class Lines(Protocol):
    """Reads lines of one source without their envelope."""

    def lines(self, first: int, last: int) -> list[Line]:
        """Lines ``first`` to ``last``."""


def continued_quotes(gated: pl.DataFrame, errors: Collection[int], source: Lines) -> list[int]:
    """Gated lines inside a string that a record of a request opened some lines above.

    Args:
        gated: ``LINES``, by line.
        errors: Lines where an error was read; only strings around these are looked for.
        source: Reader of the same input.
    """
    bare = gated.filter(pl.col("level").is_null())
    wanted = bare.filter(pl.col("line").is_in(list(errors))).select("line", "process")
    spans: list[tuple[str, int, int]] = []
    seen: dict[str, int] = {}  # per process: the line up to which no head reaches further
    for number, process in wanted.unique(maintain_order=True).head(_ERRORS).iter_rows():
        if spans and spans[-1][0] == process and number <= spans[-1][2]:
            continue
        span = _string_around(source, number, process, seen.get(process, 0))
        seen[process] = number
        if span is not None:
            spans.append((process, *span))
    own, line = pl.col("process"), pl.col("line")
    inside = [(own == process) & (line > first) & (line <= last) for process, first, last in spans]
    return bare.filter(pl.any_horizontal(inside))["line"].to_list() if inside else []


def _string_around(source: Lines, number: int, process: str, known: int) -> tuple[int, int] | None:
    """Head and last line of the string that a line stands in; null = none, or its end is not seen.

    A launcher tags what is written at once at its first line only: the head of lines without a tag can
    have one.
    """
    above = source.lines(max(1, known, number - _REACH), number - 1)
    above = _own(above, process) if process else above
    head = next((line for line in reversed(above) if line.level is not None or _quote(line)), None)
    quote = _quote(head) if head is not None else None
    if head is None or quote is None:
        return None
    body = []
    for line in _own(source.lines(head.number + 1, head.number + _REACH), process):
        if line.level is not None:
            break
        body.append(line)
    end = _end(body, quote)
    return (head.number, end) if end is not None and end >= number else None


def _own(lines: Sequence[Line], process: str) -> list[Line]:
    return [line for line in lines if line.process == process]


def _quote(line: Line) -> str | None:
    return opens_string(line.text, line.level)


def _end(body: Sequence[Line], quote: str) -> int | None:
    """Where the string closes: before the next field of the record, else at the end of a line.

    Pasted code has quotes too, so the form of a further field (``", params: ...``) counts first, and a quote
    at the end of a line only if it is the one quote of that line (``thanks"``).
    """
    field = re.compile(rf"{quote}, \w+(?:: |=)")
    at_field = next((line.number for line in body if field.search(line.text)), None)
    if at_field is not None:
        return at_field
    return next((line.number for line in body if _closes(line.text, quote)), None)


def _closes(text: str, quote: str) -> bool:
    return text.count(quote) == 1 and text.rstrip(")]} \t").endswith(quote)

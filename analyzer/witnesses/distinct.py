"""Gated lines to what they say: each distinct text goes through a grammar once. No witness by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec
import polars as pl

from analyzer.grammar import GrammarError
from analyzer.model import Line
from analyzer.schema import Loss

T = TypeVar("T")


class Told(msgspec.Struct, Generic[T]):
    """A line and what it says.

    ``above``, ``below``: the rest of a text with several lines (a JSON log record can hold a traceback).
    """

    line: Line
    value: T
    above: Sequence[str] = ()
    below: Sequence[str] = ()


def lines_of(frame: pl.DataFrame) -> Iterator[Line]:
    """The rows of a ``LINES`` frame as lines, in their order."""
    columns = frame.select("source", "line", "text", "process", "time_ns", "rank", "level")
    for source, number, text, process, time_ns, rank, level in columns.iter_rows():
        yield Line(
            source=source,
            number=number,
            text=text,
            process=process,
            time_ns=time_ns,
            rank=rank,
            level=level,
        )


class Losses:
    """Texts that a grammar did not read, one ``Loss`` for each distinct text, counted."""

    def __init__(self, witness: str) -> None:
        self._witness = witness
        self._losses: dict[str, Loss] = {}

    def add(self, source: int, line: int, text: str, why: str) -> None:
        """Count one; its line is that of the first."""
        seen = self._losses.get(text)
        if seen is not None:
            self._losses[text] = msgspec.structs.replace(seen, count=seen.count + 1)
            return
        self._losses[text] = Loss(input=source, line=line, witness=self._witness, text=text, why=why)

    def all(self) -> list[Loss]:
        """In order of first appearance."""
        return list(self._losses.values())


def read_distinct(
    frame: pl.DataFrame, read: Callable[[str], T | None], losses: Losses, key: Callable[[str], str] = str
) -> list[Told[T]]:
    """Read the gated lines of one source.

    Args:
        frame: ``LINES`` of the witness, by line.
        read: Gives null for a text of another family, and raises ``GrammarError`` for one of its own that
            it does not read.
        losses: Takes those.
        key: Cuts what makes equal texts differ (a time in front), so that they are read once.

    Returns:
        The lines of the family, in order.
    """
    known: dict[str, T | GrammarError | None] = {}
    told: list[Told[T]] = []
    columns = frame.select("source", "line", "text", "process", "time_ns", "rank")
    for source, number, whole, process, time_ns, rank in columns.iter_rows():
        parts = whole.split("\n")
        for at, part in enumerate(parts):
            text = key(part)
            if text not in known:
                known[text] = _read_or_error(read, text)
            value = known[text]
            if isinstance(value, GrammarError):
                losses.add(source, number, text, str(value))
            elif value is not None:
                line = Line(
                    source=source, number=number, text=part, process=process, time_ns=time_ns, rank=rank
                )
                told.append(Told(line=line, value=value, above=parts[:at], below=parts[at + 1 :]))
    return told


def by_process(told: Sequence[Told[T]]) -> list[list[Told[T]]]:
    """The lines of each process, in order of first appearance."""
    processes: dict[str, list[Told[T]]] = {}
    for one in told:
        processes.setdefault(one.line.process, []).append(one)
    return list(processes.values())


def _read_or_error(read: Callable[[str], T | None], text: str) -> T | GrammarError | None:
    try:
        return read(text)
    except GrammarError as error:
        return error

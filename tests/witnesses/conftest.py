"""A log in memory, gated as the pipeline gates a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
import pytest

from analyzer.model import Line, Reading
from analyzer.witness import Witness

SCHEMA = {
    "source": pl.UInt16,
    "line": pl.UInt32,
    "text": pl.String,
    "raw": pl.String,
    "time_ns": pl.Int64,
    "clock": pl.String,
    "process": pl.String,
    "rank": pl.Int32,
    "pid": pl.Int64,
    "level": pl.String,
    "stream": pl.String,
    "envelope": pl.String,
}


class MemoryLog:
    """Lines of one source; ``processes`` tells the writer of each. Counts the fetches."""

    def __init__(self, texts: Sequence[str], processes: Sequence[str] | None = None) -> None:
        writers = processes or [""] * len(texts)
        self.lines = [
            Line(source=0, number=number, text=text, process=process)
            for number, (text, process) in enumerate(zip(texts, writers, strict=True), start=1)
        ]
        self.fetches = 0

    def after(self, line: int, process: str, limit: int) -> list[Line]:
        self.fetches += 1
        return [one for one in self.lines[line:] if one.process == process][:limit]

    def before(self, line: int, process: str, limit: int) -> list[Line]:
        self.fetches += 1
        return [one for one in self.lines[: line - 1] if one.process == process][-limit:]

    def matching(self, literals: Sequence[str]) -> pl.DataFrame:
        self.fetches += 1
        rows = [
            {"line": one.number, "text": one.text, "process": one.process}
            for one in self.lines
            if any(literal in one.text for literal in literals)
        ]
        return pl.DataFrame(rows, schema={"line": pl.UInt32, "text": pl.String, "process": pl.String})

    def gated(self, witness: Witness) -> pl.DataFrame:
        passes = {
            text: any(gate in text for gate in witness.gates) for text in {one.text for one in self.lines}
        }
        rows = [
            {"source": 0, "line": one.number, "text": one.text, "raw": one.text, "process": one.process}
            for one in self.lines
            if passes[one.text]
        ]
        return pl.DataFrame(rows, schema=SCHEMA)


Reader = Callable[[Witness, Sequence[str] | str], Reading]


@pytest.fixture
def read() -> Reader:
    """Reads a text with one witness, as the only, untagged process."""

    def run(witness: Witness, text: Sequence[str] | str) -> Reading:
        log = MemoryLog(text.splitlines() if isinstance(text, str) else text)
        reading = witness.run(log.gated(witness), log)
        assert not set(reading.parsed) & set(reading.continuation)
        return reading

    return run

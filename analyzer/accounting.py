"""Every line of the inputs is counted once (design.md 3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from analyzer.ingest.load import Loaded, is_one_process
from analyzer.model import BLOCKS
from analyzer.readings import Readings
from analyzer.schema import Accounting


def account(loaded: Sequence[Loaded], readings: Readings) -> Accounting:
    """Divide all lines into record heads, record bodies, losses and the ignored rest.

    A line that is several things counts as the first of: op head, parsed, body of a record, unrecognised.
    What other writers print between the lines of an op's body counts as body, unless it is one of these.
    """
    total = sum(one.total_lines for one in loaded)
    counts = [_count(one, readings) for one in loaded]
    parsed, continuation, unrecognised = (sum(column) for column in zip(*counts, strict=True))
    return Accounting(
        total_lines=total,
        parsed=parsed,
        continuation=continuation,
        unrecognised=unrecognised,
        ignored=total - parsed - continuation - unrecognised,
    )


def _count(one: Loaded, readings: Readings) -> tuple[int, int, int]:
    """Parsed, continuation and unrecognised lines of one source."""
    source = one.source.index
    heads = _rising(one.ops["line"])
    blocks = readings.blocks.get(source, pl.DataFrame(schema=BLOCKS))
    parsed = _without(_series(readings.parsed[source], blocks.filter("head")["line"]), heads)
    bodies = _Bodies(one.ops)
    inner = blocks.filter(~pl.col("head"))["line"]
    told = _without(_series(readings.continuation[source], inner), heads, parsed)
    lost = _without(_series(readings.unrecognised[source]), heads, parsed, told)
    several = not is_one_process(one.ops)  # the body of a process ends before its own next head
    body_lines = bodies.total - bodies.count(parsed) - (bodies.count(heads) if several else 0)
    outside = told.len() - bodies.count(told)
    return heads.len() + parsed.len(), body_lines + outside, lost.len() - bodies.count(lost)


def _rising(lines: pl.Series) -> pl.Series:
    """Distinct line numbers in order; the lines of one writer already are."""
    if lines.len() < 2 or (lines.slice(1) > lines.head(lines.len() - 1)).all():
        return lines
    return lines.unique().sort()


def _series(lines: Collection[int], more: pl.Series | None = None) -> pl.Series:
    series = pl.Series(sorted(lines), dtype=pl.UInt32)
    return series if more is None else pl.concat([series, more.alias("")]).unique().sort()


def _without(lines: pl.Series, *others: pl.Series) -> pl.Series:
    """Lines that are in none of the others, which are in order. Few are looked up among millions."""
    for other in others:
        if lines.len() and other.len():
            at = other.search_sorted(lines).clip(0, other.len() - 1)
            lines = lines.filter(other.gather(at) != lines)
    return lines


class _Bodies:
    """The lines behind op heads up to ``body_last``; those of interleaved processes overlap."""

    def __init__(self, ops: pl.DataFrame) -> None:
        spans = ops.select("line", "body_last").drop_nulls().sort("line")
        self._heads = spans["line"]
        self._reach = spans["body_last"].cum_max()
        before = self._reach.shift(1).fill_null(0)
        begins = before.zip_with(before > self._heads, self._heads)
        self.total = int((self._reach - begins).sum())

    def count(self, lines: pl.Series) -> int:
        """How many of these lines are in a body."""
        if self._heads.is_empty() or lines.is_empty():
            return 0
        opened = self._heads.search_sorted(lines, side="left").cast(pl.Int64) - 1
        reach = self._reach.gather(opened.clip(0))
        return int(((opened >= 0) & (reach >= lines)).sum())

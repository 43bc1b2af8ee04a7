"""Every line of the inputs is counted once (design.md 3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from analyzer.ingest.load import Loaded
from analyzer.model import BLOCKS
from analyzer.readings import Readings
from analyzer.schema import Accounting


def account(loaded: Sequence[Loaded], readings: Readings) -> Accounting:
    """Divide all lines into record heads, record bodies, losses and the ignored rest.

    A line that is several things counts as the first of: op head, parsed, body of an op, body of another
    record, unrecognised. What other writers print between the lines of an op's body counts as body, unless it
    is one of the first two.
    """
    owned = [_divide(one, readings) for one in loaded]
    return Accounting(
        total_lines=sum(one.total for one in owned),
        parsed=sum(one.parsed for one in owned),
        continuation=sum(one.continuation for one in owned),
        unrecognised=sum(one.unrecognised for one in owned),
        ignored=sum(one.left() for one in owned),
    )


def _divide(one: Loaded, readings: Readings) -> Ledger:
    """The lines of one source: who comes first has the first claim."""
    source = one.source.index
    blocks = readings.blocks.get(source, pl.DataFrame(schema=BLOCKS))
    ledger = Ledger(one.total_lines)
    ledger.parsed += ledger.claim(one.ops["line"])
    ledger.parsed += ledger.claim(_series(readings.parsed[source], blocks.filter("head")["line"]))
    ledger.continuation += ledger.claim_bodies(one.ops)
    inner = blocks.filter(~pl.col("head"))["line"]
    ledger.continuation += ledger.claim(_series(readings.continuation[source], inner))
    ledger.unrecognised += ledger.claim(_series(readings.unrecognised[source]))
    return ledger


class Ledger:
    """Which lines of a source have an owner. A line has one: later claims get what is left.

    So the counts are those of sets without a line in common, within the lines that there are: no order of
    claims, no line number behind the end and no overlap makes one of them negative.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.parsed = self.continuation = self.unrecognised = 0
        self._owned: list[pl.Series] = []
        self._bodies: _Bodies | None = None

    def left(self) -> int:
        """How many lines nobody has claimed."""
        return self.total - self.parsed - self.continuation - self.unrecognised

    def claim(self, lines: pl.Series) -> int:
        """Give these lines an owner, as far as they exist and have none.

        Args:
            lines: Line numbers u32, in any order, with repeats.

        Returns:
            How many it got.
        """
        mine = _without(self._existing(_rising(lines)), *self._owned)
        if self._bodies is not None:
            mine = mine.filter(~self._bodies.hold(mine))
        self._owned.append(mine)
        return mine.len()

    def claim_bodies(self, ops: pl.DataFrame) -> int:
        """Give the bodies of op records an owner; once, as they are kept as spans.

        Args:
            ops: ``OPS`` of the source.

        Returns:
            How many lines it got.
        """
        assert self._bodies is None
        self._bodies = _Bodies(ops, self.total)
        return self._bodies.total - sum(self._bodies.count(owned) for owned in self._owned)

    def _existing(self, lines: pl.Series) -> pl.Series:
        """In-order lines from 1 to the last one of the source."""
        first, end = lines.search_sorted(1), lines.search_sorted(self.total, side="right")
        return lines.slice(first, end - first)


def _rising(lines: pl.Series) -> pl.Series:
    """Distinct line numbers in order; the lines of one writer already are."""
    if lines.len() < 2 or (lines.slice(1) > lines.head(lines.len() - 1)).all():
        return lines
    return lines.unique().sort()


def _series(lines: Collection[int], more: pl.Series | None = None) -> pl.Series:
    series = pl.Series(sorted(lines), dtype=pl.UInt32)
    return series if more is None else pl.concat([series, more.alias("")])


def _without(lines: pl.Series, *others: pl.Series) -> pl.Series:
    """Lines that are in none of the others, which are in order. Few are looked up among millions."""
    for other in others:
        if lines.len() and other.len():
            at = other.search_sorted(lines).clip(0, other.len() - 1)
            lines = lines.filter(other.gather(at) != lines)
    return lines


class _Bodies:
    """The lines behind op heads up to ``body_last``; those of interleaved processes overlap.

    ``total``: how many different lines they are.
    """

    def __init__(self, ops: pl.DataFrame, last_line: int) -> None:
        spans = ops.select("line", pl.col("body_last").clip(upper_bound=last_line)).drop_nulls().sort("line")
        spans = spans.filter(pl.col("body_last") > pl.col("line"))
        self._heads = spans["line"]
        self._reach = spans["body_last"].cum_max()
        before = self._reach.shift(1).fill_null(0)
        begins = before.zip_with(before > self._heads, self._heads)
        self.total = int((self._reach - begins).sum())

    def hold(self, lines: pl.Series) -> pl.Series:
        """Whether each of these lines is in a body."""
        if self._heads.is_empty() or lines.is_empty():
            return pl.repeat(value=False, n=lines.len(), eager=True)
        opened = self._heads.search_sorted(lines, side="left").cast(pl.Int64) - 1
        return (opened >= 0) & (self._reach.gather(opened.clip(0)) >= lines)

    def count(self, lines: pl.Series) -> int:
        """How many of these lines, which are in order, are in a body."""
        if self._apart(lines):
            return 0
        return int(self.hold(lines).sum())

    def _apart(self, lines: pl.Series) -> bool:
        """The usual log: these are all heads, and each body ends before the next one. Nothing is searched."""
        if lines.len() != self._heads.len() or not (lines == self._heads).all():
            return False
        return bool((self._reach.head(lines.len() - 1) < self._heads.slice(1)).all())

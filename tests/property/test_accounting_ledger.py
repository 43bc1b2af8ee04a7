"""Whoever claims which lines in whatever order: each line has one owner, and no count is negative."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analyzer.accounting import Ledger

TOTAL = 30
line = st.integers(0, TOTAL + 8)  # some are none of the source
claims = st.lists(st.lists(line, max_size=12), max_size=6)
bodies = st.lists(st.tuples(line, st.none() | line), max_size=10)


@given(claims, bodies, claims)
def test_each_line_goes_to_its_first_claim(
    before: list[list[int]], spans: list[tuple[int, int | None]], after: list[list[int]]
) -> None:
    """As many lines as the claim is the first to name, whether one by one or as the span of a body."""
    ledger = Ledger(TOTAL)
    free = set(range(1, TOTAL + 1))

    def claimed(lines: list[int]) -> None:
        expected = free & set(lines)
        assert ledger.claim(pl.Series(lines, dtype=pl.UInt32)) == len(expected)
        free.difference_update(expected)

    for lines in before:
        claimed(lines)
    inside = {number for head, last in spans for number in range(head + 1, (last or 0) + 1)} & free
    ops = pl.DataFrame(spans, schema={"line": pl.UInt32, "body_last": pl.UInt32}, orient="row")
    assert ledger.claim_bodies(ops) == len(inside)
    free.difference_update(inside)
    for lines in after:
        claimed(lines)

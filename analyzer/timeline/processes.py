"""Whose ops a frame holds. A log has one process or some, and millions of rows."""

from __future__ import annotations

import polars as pl


def owners_of(ops: pl.DataFrame) -> list[tuple[int, str]]:
    """The distinct (source, process) of ``OPS`` or ``TIMELINE``, in order of first appearance.

    One process is the usual case; it is seen by comparison, without hashing a row.
    """
    if ops.is_empty():
        return []
    pair = pl.col("source", "process")
    if all(ops.select((pair == pair.first()).all()).row(0)):
        return [(ops["source"][0], ops["process"][0])]
    return ops.select(pair).unique(maintain_order=True).rows()

"""Logs with more processes or texts than can be kept: the rest is counted.

A log of a stranger can name a million of either, and each costs what a whole process costs. What is kept
is what stands first and what stands last: the first error counts, and crashes are at the end.
"""

from __future__ import annotations

import polars as pl

MAX_PROCESSES = 4_096  # with op records; 1.3 ms each. The largest jobs with all ranks in one log stay below
MAX_TEXTS = 20_000  # of a witness and source; 0.2 ms each. Real logs have a few hundred


def first_and_last(gated: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The lines of the first and of the last texts, with all their repeats.

    Args:
        gated: ``LINES`` of one witness and source, by line.
        limit: Of distinct texts; the same text of another process is another one.

    Returns:
        The lines that are kept, by line: all, where there are not too many.
    """
    if gated.height <= limit:
        return gated
    classes = gated.select("text", "process").unique(maintain_order=True)
    if classes.height <= limit:
        return gated
    kept = pl.concat([classes.head(limit // 2), classes.tail(limit - limit // 2)])
    return gated.join(kept, on=["text", "process"], how="semi", maintain_order="left")


def largest(ops: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The ops of the processes with most of them, those seen first where they are equal.

    Args:
        ops: ``OPS`` of one source.
        limit: Of processes.
    """
    if ops.height <= limit or (ops["process"] == ops["process"][0]).all():
        return ops
    counts = ops.group_by("process", maintain_order=True).len()
    if counts.height <= limit:
        return ops
    kept = counts.sort("len", descending=True, maintain_order=True).head(limit)
    return ops.join(kept, on="process", how="semi", maintain_order="left")

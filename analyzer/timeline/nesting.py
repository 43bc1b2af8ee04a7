"""Which op encloses which: graph op > library op > vendor call (observed.md 5)."""

from __future__ import annotations

import polars as pl

MAX_DEPTH = 16  # real nesting is 3 deep; a log with a hole must not make us loop thousands of times


def nest(timeline: pl.DataFrame) -> pl.DataFrame:
    """Find the enclosing op of each launch from the order of launch and completion lines.

    Args:
        timeline: ``TIMELINE`` with ``launch_line`` and ``completion_line``, in launch order.

    Returns:
        The same rows plus ``depth`` u16 and ``parent`` u64 (null = outer op). An op is inside another one
        only if the other's completion comes after its own: on CPU several threads print at once and
        overlap without nesting. Ops without completion enclose nothing: where they end is unknown.
    """
    if timeline.is_empty():
        return timeline.with_columns(
            pl.lit(0, dtype=pl.UInt16).alias("depth"), pl.lit(None, dtype=pl.UInt64).alias("parent")
        )
    group = ["source", "process", "run"]
    if timeline.select(pl.struct(group).n_unique()).item() == 1:
        return _nest_one(timeline)
    parts = timeline.partition_by(group, maintain_order=True)
    return pl.concat([_nest_one(part) for part in parts]).sort("source", "launch_line", maintain_order=True)


def _nest_one(part: pl.DataFrame) -> pl.DataFrame:
    """Nesting within one run of one process.

    An op is still open at a launch if fewer ops have completed than were launched before it; the count of
    open ops is its level, and the latest launch one level up is the candidate for its parent.
    """
    launch, completion = pl.col("launch_line"), pl.col("completion_line")
    open_before = pl.col("_matched").cum_sum() - pl.col("_matched")
    part = part.with_columns(
        completion.is_not_null().cast(pl.Int64).alias("_matched"),
        _completed_before(part["launch_line"], part["completion_line"]).alias("_closed"),
    ).with_columns((open_before - pl.col("_closed")).clip(0, MAX_DEPTH).alias("_level"))
    deepest = int(part["_level"].max() or 0)  # type: ignore[arg-type]
    parent, parent_end = pl.lit(None, dtype=pl.UInt64), pl.lit(None, dtype=pl.UInt32)
    for level in range(1, deepest + 1):
        holder = (pl.col("_level") == level - 1) & pl.col("_matched").cast(pl.Boolean)
        here = pl.col("_level") == level
        parent = pl.when(here).then(pl.when(holder).then("id").forward_fill()).otherwise(parent)
        parent_end = pl.when(here).then(pl.when(holder).then(completion).forward_fill()).otherwise(parent_end)
    nested = part.with_columns(parent.alias("parent"), parent_end.alias("_end"))
    inside = pl.col("_end").is_not_null() & (pl.col("_end") >= pl.coalesce(completion, launch))
    return nested.with_columns(
        pl.when(inside).then("parent").alias("parent"),
        pl.when(inside).then("_level").otherwise(0).cast(pl.UInt16).alias("depth"),
    ).drop("_matched", "_closed", "_level", "_end")


def _completed_before(launches: pl.Series, completions: pl.Series) -> pl.Series:
    """For each launch, how many completions stand above it; both sides are read once, in order."""
    closed = completions.drop_nulls().sort().to_frame("_at").with_row_index("_count", offset=1)
    found = launches.to_frame("_at").join_asof(
        closed, on="_at", strategy="backward", allow_exact_matches=False
    )
    return found["_count"].fill_null(0).cast(pl.Int64)

"""Which execution of the graph each op belongs to."""

from __future__ import annotations

import polars as pl

_MIN_PERIODS = 2  # a period is believed only if the sequence repeats at least twice
_CANDIDATES = 64  # distances between recurrences of the first op that are tried as the period


def mark_steps(timeline: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Number the steps of each run.

    Args:
        timeline: ``TIMELINE`` with ``parent``, in launch order.
        marks: source, process, line: lines that the executor prints at the start of each execution. Used
            if there are any for the process; else the period of the outer op sequence is used.

    Returns:
        The rows plus ``step`` i32, from 0 in each process, runs counted on; -1 = before the first mark;
        null = no step can be told from the log.
    """
    if timeline.is_empty():
        return timeline.with_columns(pl.lit(None, dtype=pl.Int32).alias("step"))
    group = ["source", "process"]
    if timeline.select(pl.struct(group).n_unique()).item() == 1:
        return _one_process(timeline, marks)
    parts = [_one_process(part, marks) for part in timeline.partition_by(group, maintain_order=True)]
    return pl.concat(parts).sort("source", "launch_line", maintain_order=True)


def _one_process(part: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    source, process = part["source"][0], part["process"][0]
    own = marks.filter((pl.col("source") == source) & (pl.col("process") == process))
    if own.height:
        lines = own["line"].sort()
        position = lines.search_sorted(part["launch_line"], side="right").cast(pl.Int64) - 1
        dense = position.rle_id().cast(pl.Int32) - (1 if position[0] < 0 else 0)
        return part.with_columns(dense.alias("step"))
    pieces = [_by_period(run) for run in part.partition_by("run", maintain_order=True)]
    shift = 0
    numbered = []
    for piece in pieces:
        numbered.append(piece.with_columns(pl.col("step") + shift))
        shift += int(piece["step"].max() or 0) + 1 if piece["step"].null_count() < piece.height else 0  # type: ignore[arg-type]
    return pl.concat(numbered).sort("launch_line", maintain_order=True)


def _by_period(run: pl.DataFrame) -> pl.DataFrame:
    """Steps from the period of the outer op names; null if the sequence does not repeat."""
    outer = run.filter(pl.col("parent").is_null())
    period = find_period(outer["name"]) or _period_before_open_op(outer)
    if period is None:
        return run.with_columns(pl.lit(None, dtype=pl.Int32).alias("step"))
    starts = outer["launch_line"].gather_every(period)
    position = starts.search_sorted(run["launch_line"], side="right").cast(pl.Int32) - 1
    return run.with_columns(position.alias("step"))


def _period_before_open_op(outer: pl.DataFrame) -> int | None:
    """The period of a log that ends inside an op: what that op encloses looks like outer ops there."""
    open_ops = outer["completion_line"].is_null().arg_true()
    if open_ops.is_empty():
        return None
    period = find_period(outer["name"].head(open_ops[0]))
    ends_soon = period is not None and outer.height - open_ops[0] <= period
    return period if ends_soon else None


def find_period(names: pl.Series) -> int | None:
    """The smallest period under which the whole sequence repeats, or null.

    Only distances at which the first name recurs can be the period. The repetition must hold to the end
    of the sequence (the last, unfinished execution is a prefix of a sound one).
    """
    keys = names.to_physical()
    if keys.len() < 2:
        return None
    recurrences = (keys == keys[0]).arg_true()[1 : _CANDIDATES + 1]
    for period in recurrences.to_list():
        if keys.len() < _MIN_PERIODS * period:
            break
        if (keys.head(keys.len() - period) == keys.tail(keys.len() - period)).all():
            return int(period)
    return None

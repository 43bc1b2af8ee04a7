"""``OPS`` to ``TIMELINE``: matched, nested, divided into steps."""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.timeline.clock import put_in_order
from analyzer.timeline.match import mark_runs, match_completions, split_lanes, untagged_writers
from analyzer.timeline.nesting import nest
from analyzer.timeline.steps import mark_steps


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The op sequence. ``untagged_writers``: one stream held several writers that carry no tag."""

    ops: pl.DataFrame
    unmatched_completions: int
    untagged_writers: bool


def build_timeline(ops: pl.DataFrame, marks: pl.DataFrame) -> Timeline:
    """Reconstruct the op sequence.

    Args:
        ops: ``OPS`` by (source, line).
        marks: source, process, line of step marks.

    Returns:
        ``TIMELINE`` by (source, launch_line), null meanings as in ``analyzer.model``.
    """
    ops = mark_runs(put_in_order(ops))
    owner = ["source", "process"]
    mixed = untagged_writers(ops)
    if mixed.height:
        several = ops.join(mixed, on=owner, how="semi", maintain_order="left")
        lanes = [split_lanes(part) for part in several.partition_by(owner, maintain_order=True)]
        ops = pl.concat([ops.join(mixed, on=owner, how="anti", maintain_order="left"), *lanes])
    timeline, unmatched = match_completions(ops)
    timeline = mark_steps(nest(timeline), marks)
    if mixed.height:
        timeline = _without_steps(timeline, mixed)
    return Timeline(ops=timeline, unmatched_completions=unmatched, untagged_writers=mixed.height > 0)


def _without_steps(timeline: pl.DataFrame, mixed: pl.DataFrame) -> pl.DataFrame:
    """Several writers in one stream are at different steps, and no line tells whose mark it is."""
    found = timeline.join(
        mixed.with_columns(pl.lit(True).alias("mixed")), on=mixed.columns, how="left", maintain_order="left"
    )
    step = pl.when(pl.col("mixed").is_null()).then("step")
    return found.with_columns(step.alias("step")).drop("mixed")

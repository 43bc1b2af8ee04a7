"""``OPS`` to ``TIMELINE``: matched, nested, divided into steps."""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.timeline.match import has_untagged_writers, mark_runs, match_completions, split_lanes
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
        ``TIMELINE`` by (source, process, run, launch_line), null meanings as in ``analyzer.model``.
    """
    ops = mark_runs(ops)
    untagged = not ops.is_empty() and has_untagged_writers(ops)
    if untagged:
        ops = pl.concat(
            [split_lanes(part) for part in ops.partition_by("source", "process", maintain_order=True)]
        )
    timeline, unmatched = match_completions(ops)
    timeline = mark_steps(nest(timeline), marks)
    return Timeline(ops=timeline, unmatched_completions=unmatched, untagged_writers=untagged)

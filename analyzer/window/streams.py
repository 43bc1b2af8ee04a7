"""Several queues of work: a proof speaks for its own stream only (design.md rule 4).

Streams are known from a profile (``profile.join``). Without one, or where it shows a single stream, a device
has one queue, and a proof clears all that was launched before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analyzer.schema import Border, Value
from analyzer.window.proofs import Proof

_MAX_DEPTH = 16  # as in timeline.nesting
QUEUE = "queue"


class QueueBegin(Value):
    """Where the window begins on one queue: launches there up to ``begin_line`` are not in it."""

    queue: str
    begin_line: int
    border: Border
    proven: bool


def with_queue(ops: pl.DataFrame) -> pl.DataFrame:
    """Add ``queue`` str: ``0:7`` = stream 7 of device 0; null = not known, or the op launched on several.

    What an op encloses is guilty or cleared with it, so all of them have one queue.

    Args:
        ops: ``TIMELINE`` of one process.
    """
    if "device_stream" not in ops.columns:
        return ops.with_columns(pl.lit(None, dtype=pl.String).alias(QUEUE))
    rows = ops.with_columns(
        pl.format("{}:{}", "stream_device", "device_stream").alias("_own"), _root=_root(ops)
    )
    known = pl.col("_own").drop_nulls()
    several = pl.col("streams").fill_null(0).max() > 1
    only = pl.when((known.n_unique() == 1) & ~several).then(known.first())
    return rows.with_columns(only.over("run", "_root").alias(QUEUE)).drop("_own", "_root")


def _root(ops: pl.DataFrame) -> pl.Series:
    """Id of the outermost op around each."""
    root = ops.select(pl.coalesce("parent", "id").alias("root")).to_series()
    parents = ops.filter(pl.col("parent").is_not_null()).select("run", "id", pl.col("parent").alias("up"))
    parents = parents.unique(["run", "id"], keep="last")
    for _ in range(_MAX_DEPTH if parents.height else 0):
        at = pl.DataFrame({"run": ops["run"], "id": root})
        above = at.join(parents, on=["run", "id"], how="left", maintain_order="left")
        higher = above.select(pl.coalesce("up", "id")).to_series()
        if (higher == root).all():
            break
        root = higher
    return root


def queues_of(ops: pl.DataFrame) -> list[str]:
    """The known queues, in the order of their first launch; one or none = a proof speaks for all."""
    return ops[QUEUE].drop_nulls().unique(maintain_order=True).to_list()


def queue_of_proof(ops: pl.DataFrame, proof: Proof) -> str | None:
    """The queue that a value was read back from: that of the last copy to the host before its line.

    Null = no such copy is known. Then the value says nothing about any queue: which one was waited for?
    """
    copies = ops.filter((pl.col("launch_line") < proof.line) & pl.col("to_host").fill_null(value=False))
    if copies.is_empty():
        return None
    last = copies.row(-1, named=True)
    return f"{last['stream_device']}:{last['device_stream']}"


def begin_of(queues: Sequence[QueueBegin], otherwise: int) -> pl.Expr:
    """The line up to which the launches of a row's queue are not in the window.

    A row whose queue is not known can be of any: the earliest begin counts (``otherwise``).
    """
    begin = pl.lit(otherwise)
    for one in queues:
        begin = pl.when(pl.col(QUEUE) == one.queue).then(one.begin_line).otherwise(begin)
    return begin


def is_proven(queues: Sequence[QueueBegin], *, otherwise: bool) -> pl.Expr:
    """Whether a proof stands behind ``begin_of`` for a row."""
    proven = pl.lit(otherwise)
    for one in queues:
        proven = pl.when(pl.col(QUEUE) == one.queue).then(pl.lit(one.proven)).otherwise(proven)
    return proven


def stream_words(queue: str) -> str:
    """``stream 7 of device 0``."""
    device, _, stream = queue.partition(":")
    return f"stream {stream} of device {device}"


def joint_border(queues: Sequence[QueueBegin]) -> Border:
    """One border for all queues, with what holds for each. ``line`` = that of the last proof."""
    said = [
        f"{stream_words(one.queue)}: {one.border.reason}"
        + (f" (line {one.border.line})" if one.border.line else "")
        for one in queues
    ]
    last = max((one for one in queues if one.proven), key=lambda one: one.border.line or 0, default=None)
    return Border(
        reason=f"a proof speaks for its own stream only. {'; '.join(said)}",
        line=last.border.line if last else None,
        proof=last.border.proof if last else None,
    )

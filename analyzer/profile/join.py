"""Device times of ops: what the profile says each framework op launched."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import polars as pl

from analyzer.profile.model import Profile
from analyzer.schema import Value

_TO_HOST = r"(?i)DtoH|Device ?-> ?(?:Pageable|Pinned|Host)"  # Kineto, and what nsys.py writes
_NAMES_SHOWN = 3


class Joined(Value):
    """How much of a profile found its op in the log: pieces of device work.

    ``joined`` to an op of the log, ``elsewhere`` launched by an op that the log does not hold (or not as
    often), ``unassigned`` launched outside of every op. ``ops``: ops of the log, ``ops_with_times`` those
    joined.
    """

    source: str
    joined: int
    elsewhere: int
    unassigned: int
    ops: int
    ops_with_times: int
    names: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Whether any device work found its op."""
        return self.joined > 0

    @property
    def text(self) -> str:
        """One sentence for a person."""
        total = f"{self.joined + self.elsewhere + self.unassigned} kernels and copies"
        rest = (
            f"{self.elsewhere} of ops not in the log (or not as often), {self.unassigned} outside of any op"
        )
        if self.matches:
            return (
                f"profile ({self.source}): {self.joined} of {total} joined to"
                f" {self.ops_with_times} of {self.ops} ops; {rest}"
            )
        if not self.ops:
            return f"profile ({self.source}): the log has no op records to join its {total} to"
        names = f"; its ops: {', '.join(self.names)}" if self.names else ""
        return (
            f"profile ({self.source}) does not match this log: none of its {total} could be"
            f" joined to an op ({rest}{names})"
        )


def joined_work(joined: pl.DataFrame, profile: Profile) -> Joined:
    """Count what ``join_ops`` could join."""
    found = int(joined["kernels"].sum() or 0)
    named = profile.kernels["op"].drop_nulls()
    return Joined(
        source=profile.source,
        joined=found,
        elsewhere=named.len() - found,
        unassigned=profile.unassigned,
        ops=joined.height,
        ops_with_times=joined.height - joined["kernels"].null_count(),
        names=tuple(named.unique(maintain_order=True).head(_NAMES_SHOWN).to_list()),
    )


def device_totals(profile: Profile) -> pl.DataFrame:
    """Device time by launching op.

    Returns:
        op str (null = launched outside of any op), kernels u32, total_ns i64, median_ns f64, p99_ns f64,
        share f64 (of all device time), streams list[i64]; longest first. The totals add up to the
        device time of the trace.
    """
    work = profile.kernels
    whole = max(1, int(work["duration_ns"].sum()))
    return (
        work.group_by("op")
        .agg(
            pl.len().cast(pl.UInt32).alias("kernels"),
            pl.col("duration_ns").sum().alias("total_ns"),
            pl.col("duration_ns").median().alias("median_ns"),
            pl.col("duration_ns").quantile(0.99).alias("p99_ns"),
            pl.col("stream").unique().sort().alias("streams"),
        )
        .with_columns((pl.col("total_ns") / whole).alias("share"))
        .sort("total_ns", "op", descending=[True, False], nulls_last=True)
    )


def join_ops(ops: pl.DataFrame, profile: Profile) -> pl.DataFrame:
    """Give the launches of an op log the device times of a profile of the same run.

    There is no id common to both, so the n-th launch of a name in the log is the n-th op of that name in the
    profile; names whose counts differ are left without times (which occurrence is which cannot be known). A
    profile shows ops that a log leaves out, above and below its own: a kernel belongs to the innermost op
    around its launch that the log has.

    Args:
        ops: ``TIMELINE`` in launch order.
        profile: A profile that covers the same launches.

    Returns:
        ``ops`` plus device_start_ns i64, device_ns i64 (sum over its kernels), device_stream i64 and
        stream_device i32 (of its first kernel), streams u32 (how many it launched on), kernels u32, to_host
        bool (it copied to the host); null = not joined, or it launched nothing.
    """
    parents = _parents(profile.ops)
    seen = _seen(ops, profile.ops, parents)
    counts = seen.group_by("name").len("in_profile")
    numbered = ops.with_columns(
        pl.col("name").cast(pl.String).alias("_name"),
        pl.int_range(pl.len()).over("name").alias("nth"),
        pl.len().over("name").alias("in_log"),
    )
    same = pl.when(pl.col("in_log") == pl.col("in_profile")).then("index")
    placed = (
        numbered.join(counts, left_on="_name", right_on="name", how="left", maintain_order="left")
        .join(seen, left_on=["_name", "nth"], right_on=["name", "nth"], how="left", maintain_order="left")
        .with_columns(same.alias("index"))
    )
    work = _work_by_op(profile.kernels, parents, set(placed["index"].drop_nulls().to_list()))
    return placed.join(work, left_on="index", right_on="op_index", how="left", maintain_order="left").drop(
        "_name", "nth", "in_log", "in_profile", "index"
    )


def _parents(seen: pl.DataFrame) -> list[int | None]:
    """For each op of a profile the one around it on its thread."""
    around: list[int | None] = [None] * seen.height
    stacks: dict[int | None, list[tuple[int, int]]] = {}
    rows = seen.sort("start_ns", "duration_ns", descending=[False, True]).select(
        "index", "thread", "start_ns", "duration_ns"
    )
    for index, thread, start, length in rows.iter_rows():
        stack = stacks.setdefault(thread, [])
        while stack and stack[-1][1] < start + length:  # it ended before, or overlaps: not around
            stack.pop()
        around[index] = stack[-1][0] if stack else None
        stack.append((index, start + length))
    return around


def _seen(ops: pl.DataFrame, seen: pl.DataFrame, parents: Sequence[int | None]) -> pl.DataFrame:
    """The ops of a profile that a log has: index, name, nth.

    PyTorch's log has no inner ops, so what the profile shows inside a logged op is none of the log's.
    """
    logged = set(ops["name"].cast(pl.String).unique().to_list())
    found = seen.filter(pl.col("name").is_in(list(logged)))
    if "parent" not in ops.columns or ops["parent"].null_count() == ops.height:
        inner, names = [False] * seen.height, seen["name"].to_list()
        for index in seen.sort("start_ns", "duration_ns", descending=[False, True])["index"]:
            up = parents[index]
            inner[index] = up is not None and (inner[up] or names[up] in logged)
        found = found.filter(~pl.Series(inner).gather(found["index"]))
    return found.select("index", "name", pl.int_range(pl.len()).over("name").alias("nth"))


def _work_by_op(
    kernels: pl.DataFrame, parents: Sequence[int | None], joined: AbstractSet[int]
) -> pl.DataFrame:
    """Device work of each joined op."""
    owners = []
    for index in kernels["op_index"]:
        at = index
        while at is not None and at not in joined:
            at = parents[at]
        owners.append(at)
    queue = pl.struct("device", "stream")
    to_host = (pl.col("kind") == "memcpy") & pl.col("name").str.contains(_TO_HOST)
    return (
        kernels.with_columns(pl.Series("op_index", owners, dtype=pl.UInt32))
        .filter(pl.col("op_index").is_not_null())
        .group_by("op_index")
        .agg(
            pl.col("start_ns").min().alias("device_start_ns"),
            pl.col("duration_ns").sum().alias("device_ns"),
            pl.col("stream").first().alias("device_stream"),
            pl.col("device").first().alias("stream_device"),
            queue.n_unique().cast(pl.UInt32).alias("streams"),
            pl.len().cast(pl.UInt32).alias("kernels"),
            to_host.any().alias("to_host"),
        )
    )

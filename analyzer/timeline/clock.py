"""Stamps of op records: clocks without a date put in order, and what of them cannot be compared.

Some servers print no date, others no year (formats.md 7.8). A clock can be set back, and two writers of one
process can stamp by different clocks: such differences are no durations.
"""

from __future__ import annotations

import polars as pl

_DAY_NS = 86_400 * 1_000_000_000
# What a clock begins anew after, and how far back a stamp must be for that: further than any reordering.
_WRAPS = {"no_date": _DAY_NS, "no_year": 365 * _DAY_NS}
_OWNER = ["source", "process"]


def put_in_order(ops: pl.DataFrame) -> pl.DataFrame:
    """Stamps that can be subtracted from one another within a process.

    A clock without a date that falls by more than half a day has passed midnight. Stamps of another clock
    than that of most records of the process are taken for none.

    Args:
        ops: ``OPS`` in line order.
    """
    if ops["clock"].drop_nulls().is_in(["epoch", "boot"]).all() and ops["clock"].n_unique() <= 1:
        return ops
    usual = pl.col("clock").drop_nulls().mode().sort().first().over(_OWNER)
    time = pl.when(pl.col("clock") == usual).then("time_ns")
    ops = ops.with_columns(time.alias("time_ns"))
    known = pl.col("time_ns").forward_fill().over(_OWNER)
    fall = known.shift(1).over(_OWNER) - known
    for clock, length in _WRAPS.items():
        wraps = ((pl.col("clock") == clock) & (fall > length // 2)).fill_null(value=False)
        ops = ops.with_columns(
            (pl.col("time_ns") + wraps.cast(pl.Int64).cum_sum().over(_OWNER) * length).alias("time_ns")
        )
    return ops


def doubts(timeline: pl.DataFrame) -> list[str]:
    """What has to be known before the times of ``TIMELINE`` are believed, in sentences; empty = nothing."""
    launch, completion = pl.col("launch_ns"), pl.col("completion_ns")
    hosts = timeline.filter(pl.col("device_ns").is_null()) if "device_ns" in timeline.columns else timeline
    both = hosts.filter(launch.is_not_null() & completion.is_not_null())
    same = both.filter(launch == completion).height
    back = both.filter(completion < launch).height
    undated = sorted(set(timeline["clock"].drop_nulls().unique().to_list()) - {"epoch"})
    found = []
    if same:
        what = f"{same} of {timeline.height} launches ended within one stamp"
        found.append(f"{what}: their times are below what the stamps tell, and are not shown")
    if back:
        found.append(f"{back} launches have an end stamped before their begin: their times are not shown")
    words = {"no_date": "without a date", "no_year": "without a year", "boot": "since the machine's start"}
    if undated:
        told = " and ".join(words.get(clock, clock) for clock in undated)
        found.append(f"the stamps are {told}: more than one turn of the clock between two lines is not seen")
    return found

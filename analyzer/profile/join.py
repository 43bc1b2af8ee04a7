"""Device times of ops: what the profile says each framework op launched."""

from __future__ import annotations

import polars as pl

from analyzer.profile.model import Profile


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
    profile; names whose counts differ are left without times (which occurrence is which cannot be known).

    Args:
        ops: ``TIMELINE`` in launch order.
        profile: A profile that covers the same launches.

    Returns:
        ``ops`` plus device_start_ns i64, device_ns i64 (sum over its kernels), stream i64 (of its first
        kernel); null = not joined, or it launched nothing.
    """
    work = (
        profile.kernels.filter(pl.col("op_index").is_not_null())
        .group_by("op_index")
        .agg(
            pl.col("start_ns").min().alias("device_start_ns"),
            pl.col("duration_ns").sum().alias("device_ns"),
            pl.col("stream").first(),
        )
    )
    seen = profile.ops.select("index", "name", pl.int_range(pl.len()).over("name").alias("nth"))
    counts = seen.group_by("name").len("in_profile")
    numbered = ops.with_columns(
        pl.col("name").cast(pl.String).alias("_name"),
        pl.int_range(pl.len()).over("name").alias("nth"),
        pl.len().over("name").alias("in_log"),
    )
    return (
        numbered.join(counts, left_on="_name", right_on="name", how="left", maintain_order="left")
        .join(seen, left_on=["_name", "nth"], right_on=["name", "nth"], how="left", maintain_order="left")
        .with_columns(pl.when(pl.col("in_log") == pl.col("in_profile")).then("index").alias("index"))
        .join(work, left_on="index", right_on="op_index", how="left", maintain_order="left")
        .drop("_name", "nth", "in_log", "in_profile", "index")
    )

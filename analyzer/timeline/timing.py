"""Times of ops and steps, and what they mean. A host time is never shown as a device time (design.md 7)."""

from __future__ import annotations

import polars as pl

from analyzer.schema import TimingBasis

OUTLIER_FACTOR = 5.0  # median absolute deviations; steps of a decoder vary little, a stall stands far out
_MIN_STEPS = 5  # with fewer steps a median says nothing


def timing_basis(timeline: pl.DataFrame, *, sync_mode: bool | None) -> TimingBasis:
    """What the durations of ``TIMELINE`` mean.

    ``device``: a profile gave device times, or every launch waited for its kernel (sync mode) and lines carry
    stamps. ``host``: stamps of a run with asynchronous launches; they time the dispatch. ``none``: op records
    carry no clock (observed.md 8).
    """
    if "device_ns" in timeline.columns and timeline["device_ns"].drop_nulls().len():
        return "device"
    if timeline["launch_ns"].drop_nulls().is_empty():
        return "none"
    return "device" if sync_mode else "host"


def with_durations(timeline: pl.DataFrame) -> pl.DataFrame:
    """Add ``duration_ns`` i64: device time where a profile gave it, else completion minus launch.

    Null = no clock for it, the two stamps are not of one clock, or they are equal: a recorder stamps what it
    reads at once with one time.
    """
    host = pl.col("completion_ns") - pl.col("launch_ns")
    host = pl.when(host > 0).then(host)
    duration = pl.coalesce("device_ns", host) if "device_ns" in timeline.columns else host
    return timeline.with_columns(duration.alias("duration_ns"))


def op_totals(timeline: pl.DataFrame) -> pl.DataFrame:
    """Totals by op name.

    Returns:
        name str, count u32, total_ns i64, median_ns f64, p99_ns f64 (null = no clock), share f64 (of the
        total of all *outer* ops, so that inner ones are not counted twice; null = no clock), first_step,
        last_step i32 (null = steps unknown); by total_ns, then count.
    """
    outer = pl.col("parent").is_null()
    timed = with_durations(timeline)
    whole = timed.filter(outer)["duration_ns"].sum() or 0
    duration = pl.col("duration_ns")
    known_step = pl.col("step").filter(pl.col("step") >= 0)  # -1: before the first one
    return (
        timed.group_by("name")
        .agg(
            pl.len().cast(pl.UInt32).alias("count"),
            pl.when(duration.count() > 0).then(duration.sum()).alias("total_ns"),
            duration.median().alias("median_ns"),
            duration.quantile(0.99).alias("p99_ns"),
            pl.when((duration.count() > 0) & (whole > 0)).then(duration.sum() / max(1, whole)).alias("share"),
            known_step.min().alias("first_step"),
            known_step.max().alias("last_step"),
        )
        .with_columns(pl.col("name").cast(pl.String))
        .sort("total_ns", "count", "name", descending=[True, True, False], nulls_last=True)
    )


def step_times(timeline: pl.DataFrame) -> pl.DataFrame:
    """Times of steps.

    Returns:
        process str, step i32, ops u32, start_ns i64, end_ns i64, duration_ns i64 (first launch to last
        completion; null = no clock, one that was set back inside the step, or one stamp for all of it),
        outlier bool (null = too few steps to say); by process and step.
    """
    steps = (
        timeline.filter(pl.col("step").is_not_null() & (pl.col("step") >= 0))
        .group_by("process", "step")
        .agg(
            pl.len().cast(pl.UInt32).alias("ops"),
            pl.col("launch_ns").min().alias("start_ns"),
            pl.max_horizontal(pl.col("completion_ns").max(), pl.col("launch_ns").max()).alias("end_ns"),
            ((pl.col("launch_ns").diff() < 0) | (pl.col("completion_ns") < pl.col("launch_ns")))
            .any()
            .alias("_back"),
        )
        .sort("process", "step")
        .with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))
        .with_columns(
            pl.when(~pl.col("_back") & (pl.col("duration_ns") > 0)).then("duration_ns").alias("duration_ns")
        )
        .drop("_back")
    )
    duration = pl.col("duration_ns")
    deviation = (duration - duration.median()).abs()
    far = deviation > OUTLIER_FACTOR * pl.max_horizontal(deviation.median(), duration.median() * 0.01)
    enough = duration.count() >= _MIN_STEPS
    return steps.with_columns(
        pl.when(enough & duration.is_not_null()).then(far).over("process").alias("outlier")
    )

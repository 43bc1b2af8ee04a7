"""Times of ops and steps, and what they mean."""

from __future__ import annotations

import polars as pl
import pytest

from analyzer.report.timeline_table import duration, render_timeline
from analyzer.timeline.timing import op_totals, step_times, timing_basis

SCHEMA = {
    "process": pl.String,
    "name": pl.Categorical,
    "step": pl.Int32,
    "parent": pl.UInt64,
    "launch_ns": pl.Int64,
    "completion_ns": pl.Int64,
}


def timeline(*rows: tuple[str, int, int | None, int | None, int | None]) -> pl.DataFrame:
    """Rows of name, step, parent, launch, completion."""
    return pl.DataFrame([("", *row) for row in rows], schema=SCHEMA, orient="row")


def steps(*lengths: int) -> pl.DataFrame:
    return timeline(*(("op", i, None, 1000 * i, 1000 * i + length) for i, length in enumerate(lengths)))


def test_a_log_without_stamps_has_no_times() -> None:
    """observed.md 8: op records carry no clock."""
    log = timeline(("op", 0, None, None, None))
    assert timing_basis(log, sync_mode=True) == "none"
    assert op_totals(log).row(0, named=True)["total_ns"] is None
    assert "no clock" in render_timeline(op_totals(log), step_times(log), "none", width=80, color=False)


@pytest.mark.parametrize(("sync", "basis"), [(True, "device"), (False, "host"), (None, "host")])
def test_stamps_time_the_device_only_in_sync_mode(*, sync: bool | None, basis: str) -> None:
    assert timing_basis(steps(10), sync_mode=sync) == basis


def test_a_joined_profile_gives_device_times() -> None:
    log = steps(10).with_columns(pl.lit(3, dtype=pl.Int64).alias("device_ns"))
    assert timing_basis(log, sync_mode=None) == "device"
    assert op_totals(log)["total_ns"].to_list() == [3]


def test_inner_ops_are_not_counted_twice_in_the_share() -> None:
    log = timeline(("outer", 0, None, 0, 100), ("inner", 0, 7, 10, 60))
    assert dict(op_totals(log).select("name", "share").rows()) == {"outer": 1.0, "inner": 0.5}


def test_a_completion_before_its_launch_gives_no_duration() -> None:
    """Two clocks, or a clock that was set back."""
    assert op_totals(timeline(("op", 0, None, 100, 40)))["total_ns"].to_list() in ([None], [0])
    assert op_totals(timeline(("op", 0, None, 100, 40)))["median_ns"].to_list() == [None]


def test_a_stalled_step_is_an_outlier() -> None:
    assert step_times(steps(10, 11, 10, 9, 10, 500))["outlier"].to_list() == [False] * 5 + [True]


def test_few_steps_have_no_outlier() -> None:
    assert step_times(steps(10, 500))["outlier"].to_list() == [None, None]


def test_tables_fit_the_width_and_hold_no_colour_when_piped() -> None:
    log = timeline(
        *((f"Epilogue(matmul, silu, operandIndices=[{i}])", 0, None, 0, 10 + i) for i in range(30))
    )
    text = render_timeline(op_totals(log), step_times(log), "host", width=70, color=False)
    assert max(map(len, text.splitlines())) <= 70
    assert "\x1b" not in text
    assert "and 10 more names" in text
    assert "dispatch, not the kernels" in text


def test_durations_read_as_a_person_writes_them() -> None:
    assert [duration(n) for n in (None, 12, 12_345, 3_200_000, 2e9)] == [
        "",
        "12 ns",
        "12.3 us",
        "3.2 ms",
        "2 s",
    ]

"""Clocks without a date, clocks that are set back, and two clocks in one process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from analyzer.pipeline import open_analysis
from analyzer.timeline.clock import doubts, put_in_order
from analyzer.timeline.timing import op_totals, step_times, with_durations
from tests.oplog import MARK, complete, launch

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000_000
DAY = 86_400 * SECOND
SCHEMA = {"source": pl.UInt16, "process": pl.String, "time_ns": pl.Int64, "clock": pl.String}


def stamped(*rows: tuple[int | None, str | None], process: str = "") -> pl.DataFrame:
    return pl.DataFrame([(0, process, *row) for row in rows], schema=SCHEMA, orient="row")


def times(frame: pl.DataFrame) -> list[int | None]:
    return put_in_order(frame)["time_ns"].to_list()


@pytest.mark.parametrize(("clock", "turn"), [("no_date", DAY), ("no_year", 365 * DAY)])
def test_a_clock_without_a_date_goes_on_after_its_turn(clock: str, turn: int) -> None:
    late = turn - 2 * SECOND
    rows = [(late, clock), (None, None), (SECOND, clock), (3 * SECOND, clock), (late, clock), (5, clock)]
    assert times(stamped(*rows)) == [late, None, turn + SECOND, turn + 3 * SECOND, turn + late, 2 * turn + 5]


def test_a_clock_that_is_set_back_a_little_has_not_passed_midnight() -> None:
    assert times(stamped((9 * SECOND, "no_date"), (4 * SECOND, "no_date"))) == [9 * SECOND, 4 * SECOND]


def test_each_process_passes_midnight_on_its_own() -> None:
    late = DAY - SECOND
    rows = [
        (0, "a", late, "no_date"),
        (0, "b", SECOND, "no_date"),
        (0, "a", 5, "no_date"),
        (0, "b", 2, "no_date"),
    ]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    assert times(frame) == [late, SECOND, DAY + 5, 2]


def test_stamps_of_a_second_clock_are_not_compared() -> None:
    rows = [(DAY * 20_000, "epoch"), (DAY * 20_000 + 4, "epoch"), (30, "boot"), (DAY * 20_000 + 9, "epoch")]
    assert times(stamped(*rows)) == [DAY * 20_000, DAY * 20_000 + 4, None, DAY * 20_000 + 9]


def test_full_dates_are_left_as_they_are() -> None:
    frame = stamped((DAY, "epoch"), (5, "epoch"))
    assert put_in_order(frame) is frame


def log_of(folder: Path, clocks: Sequence[str]) -> Path:
    """An op log of MAX's console, two lines to an op, a step an op; ``clocks`` one a line."""
    lines = []
    for step in range(len(clocks) // 2):
        begin, end = clocks[2 * step], clocks[2 * step + 1]
        lines += [f"{begin} INFO: {MARK}", f"{begin} INFO: {launch('matmul', step)}"]
        lines += [f"{end} INFO: {complete('matmul', step)}"]
    path = folder / "serve.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def shown(path: Path) -> str:
    command = [sys.executable, "-m", "analyzer", str(path), "--timeline", "--width", "160"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_log_over_midnight_has_steps_of_milliseconds(tmp_path: Path) -> None:
    path = log_of(
        tmp_path,
        ["23:59:59.980", "23:59:59.990", "23:59:59.995", "00:00:00.005", "00:00:00.010", "00:00:00.020"],
    )
    with open_analysis([str(path)]) as analysis:
        ops = analysis.timeline.ops
    assert ops["clock"].unique().to_list() == ["no_date"]
    assert with_durations(ops)["duration_ns"].to_list() == [10_000_000] * 3
    assert step_times(ops)["duration_ns"].to_list() == [10_000_000] * 3
    text = shown(path)
    assert (
        "the stamps are without a date: more than one turn of the clock between two lines is not seen" in text
    )
    assert "-" not in re.sub(r"[\w.]-[\w.]", "", text.split("Steps:")[1])


def test_a_clock_that_is_set_back_shows_no_negative_time(tmp_path: Path) -> None:
    """Between launch and end of an op, and between two ops of a step."""
    path = log_of(tmp_path, ["10:00:05.000", "10:00:03.000", "10:00:03.010", "10:00:03.020"])
    with open_analysis([str(path)]) as analysis:
        ops = analysis.timeline.ops
    assert with_durations(ops)["duration_ns"].to_list() == [None, 10_000_000]
    assert step_times(ops)["duration_ns"].to_list() == [None, 10_000_000]
    assert op_totals(ops)["total_ns"].to_list() == [10_000_000]
    assert "1 launches have an end stamped before their begin: their times are not shown" in shown(path)
    two = ops.with_columns(pl.lit(0, dtype=pl.Int32).alias("step"))
    assert step_times(two)["duration_ns"].to_list() == [None]


def test_equal_stamps_are_no_time_of_zero() -> None:
    """A recorder stamps what it reads at once with one time."""
    frame = pl.DataFrame(
        {
            "process": [""],
            "name": ["a"],
            "step": [0],
            "launch_ns": [7],
            "completion_ns": [7],
            "clock": ["epoch"],
        }
    ).with_columns(pl.lit(None, dtype=pl.UInt64).alias("parent"), pl.col("step").cast(pl.Int32))
    assert op_totals(frame)["total_ns"].to_list() == [None]
    assert step_times(frame)["duration_ns"].to_list() == [None]
    (doubt,) = doubts(frame)
    assert doubt.startswith("1 of 1 launches ended within one stamp")

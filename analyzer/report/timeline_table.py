"""The timeline as tables: ops by time, steps with outliers (``--timeline``)."""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analyzer.report.plain import plain
from analyzer.schema import TimingBasis

OPS_SHOWN = 20
STEPS_SHOWN = 12
_BASIS = {
    "device": "times are device times",
    "host": "times are host times: they measure the dispatch, not the kernels",
    "none": "this log has no clock: counts only (record with `trace-analyze record`, or join a --profile)",
}


def render_timeline(
    totals: pl.DataFrame,
    steps: pl.DataFrame,
    basis: TimingBasis,
    *,
    width: int,
    color: bool,
    notes: Sequence[str] = (),
) -> str:
    """Two tables: the ops (``op_totals``) and the steps (``step_times``).

    Args:
        totals: Ops by total time.
        steps: Steps with times; outliers are shown first, the others from the end.
        basis: What the times mean; printed in words.
        width: Columns.
        color: Whether colour codes may be used.
        notes: What has to be known to read the times, such as what a profile could not be joined to.
    """
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False)
    console.print(Text(f"Ops: {totals.height} names, {totals['count'].sum()} launches; {_BASIS[basis]}"))
    for note in notes:
        console.print(Text(plain(note)))
    console.print(_ops_table(totals.head(OPS_SHOWN)))
    if totals.height > OPS_SHOWN:
        console.print(Text(f"and {totals.height - OPS_SHOWN} more names"))
    if steps.height:
        console.print(Text(_steps_line(steps)))
        if steps["duration_ns"].drop_nulls().len():
            console.print(_steps_table(_chosen(steps)))
    return out.getvalue()


def _ops_table(totals: pl.DataFrame) -> Table:
    heads = ["op", "count", "total", "median", "p99", "share", "steps"]
    table = _table(heads)
    for row in totals.iter_rows(named=True):
        table.add_row(
            Text(plain(row["name"])),
            str(row["count"]),
            duration(row["total_ns"]),
            duration(row["median_ns"]),
            duration(row["p99_ns"]),
            "" if row["share"] is None else f"{row['share']:.1%}",
            "" if row["first_step"] is None else f"{row['first_step']}-{row['last_step']}",
        )
    return table


def _steps_line(steps: pl.DataFrame) -> str:
    odd = int(steps["outlier"].sum() or 0)
    middle = steps["duration_ns"].median()
    if middle is None:
        return f"Steps: {steps.height}"
    return f"Steps: {steps.height}, median {duration(float(str(middle)))}, {odd} outliers"


def _chosen(steps: pl.DataFrame) -> pl.DataFrame:
    odd = steps.filter(pl.col("outlier").fill_null(False)).sort("duration_ns", descending=True)
    rest = steps.filter(~pl.col("outlier").fill_null(False)).tail(max(0, STEPS_SHOWN - odd.height))
    return pl.concat([odd.head(STEPS_SHOWN), rest]).sort("process", "step")


def _steps_table(steps: pl.DataFrame) -> Table:
    table = _table(["step", "process", "ops", "time", ""])
    for row in steps.iter_rows(named=True):
        table.add_row(
            str(row["step"]),
            Text(plain(row["process"])),
            str(row["ops"]),
            duration(row["duration_ns"]),
            "outlier" if row["outlier"] else "",
        )
    return table


def _table(heads: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 0 else "right", overflow="fold")
    return table


def duration(nanoseconds: float | None) -> str:
    """``12.3 us``; empty = not known."""
    if nanoseconds is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"

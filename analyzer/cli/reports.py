"""Report and timeline files: made by the core, written here."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from analyzer.pipeline import Analysis
from analyzer.report.build import ReportContext, ReportKind, ReportRequest, render_reports
from analyzer.report.cells import csv_bytes, distinct_texts, with_texts
from analyzer.report.redact import redacted, redactor_of
from analyzer.report.request import StepSpan, WindowOp
from analyzer.report.write import write_atomically
from analyzer.schema import Result
from analyzer.timeline.facts import op_ref
from analyzer.timeline.timing import with_durations

WINDOW_OPS = 2_000  # more lanes than that cannot be read
STEPS = 5_000  # the last ones; a picture has fewer columns


def write_reports(
    analysis: Analysis,
    paths: Sequence[Path],
    kind: ReportKind | None,
    limit_bytes: int | None,
    *,
    redact: bool,
) -> None:
    """Write all reports, or none if one of them cannot be made.

    Raises:
        UsageError: An ending names no kind, or a limit cannot be kept.
        WriteError: A file cannot be written; an older one stays.
    """
    context = report_context(analysis, redact=redact)
    wanted = [ReportRequest(path=path, kind=kind, limit_bytes=limit_bytes) for path in paths]
    for path, content in render_reports(analysis.result, wanted, context):
        write_atomically(path, content)


def report_context(analysis: Analysis, *, redact: bool = False) -> ReportContext:
    """What reports need beside the result: raw lines, launches of the window, steps."""
    return ReportContext(
        excerpt=analysis.excerpt,
        redact=redact,
        window_ops=_window_ops(analysis),
        steps=_steps(analysis),
    )


def write_timeline(analysis: Analysis, csv: Path | None, parquet: Path | None, *, redact: bool) -> None:
    """Write the op timeline, one row a launch, as tables.

    Raises:
        WriteError: A file cannot be written; an older one stays.
    """
    names = pl.col("name", "detail").cast(pl.String)
    ops = with_durations(timeline_ops(analysis, redact=redact)).with_columns(names)
    if csv is not None:
        write_atomically(csv, csv_bytes(ops))
    if parquet is not None:
        buffer = io.BytesIO()
        ops.write_parquet(buffer)
        write_atomically(parquet, buffer.getvalue())


def shown_result(analysis: Analysis) -> Result:
    """The result as ``--redact`` prints it."""
    return redacted(analysis.result, report_context(analysis, redact=True))[0]


def timeline_ops(analysis: Analysis, *, redact: bool) -> pl.DataFrame:
    """The timeline as it is shown and written."""
    ops = analysis.timeline.ops
    if not redact:
        return ops
    redactor = redactor_of(analysis.result, report_context(analysis, redact=True))
    for text in distinct_texts(ops):
        redactor.learn(text)
    return with_texts(ops, redactor.clean)


def _window_ops(analysis: Analysis) -> tuple[WindowOp, ...]:
    """Launches of the window with depth and times, inner ones too."""
    window = analysis.result.window
    if window is None or window.first_op.line is None or window.last_op.line is None:
        return ()
    devices = {op.line: op.device for op in window.ops}
    source = (pl.col("source") == window.first_op.input) & (pl.col("process") == window.first_op.process)
    lines = pl.col("launch_line").is_between(window.first_op.line, window.last_op.line)
    rows: Sequence[Mapping[str, Any]] = (
        analysis.timeline.ops.filter(source & lines).head(WINDOW_OPS).to_dicts()
    )
    if "device_stream" in analysis.timeline.ops.columns:  # other queues go on in between
        rows = list(_in_window(rows, set(devices)))
    return tuple(
        WindowOp(
            op=op_ref(row, devices.get(row["launch_line"])),
            depth=row["depth"],
            stream=str(row["device_stream"]) if row.get("device_stream") is not None else None,
            launch_ns=row["launch_ns"],
            completion_ns=row["completion_ns"],
        )
        for row in rows
    )


def _in_window(
    rows: Iterable[Mapping[str, Any]], lines: Collection[int | None]
) -> Iterator[Mapping[str, Any]]:
    """The rows whose outer op is in the window, with what it encloses."""
    inside = False
    for row in rows:
        if row["depth"] == 0:
            inside = row["launch_line"] in lines
        if inside:
            yield row


def _steps(analysis: Analysis) -> tuple[StepSpan, ...]:
    """Steps of the process of the window, else of all."""
    ops = analysis.timeline.ops.filter(pl.col("step").is_not_null() & (pl.col("step") >= 0))
    window = analysis.result.window
    if window is not None:
        ops = ops.filter(
            (pl.col("source") == window.first_op.input) & (pl.col("process") == window.first_op.process)
        )
    spans = (
        ops.group_by("source", "step")
        .agg(
            pl.col("launch_line").min().alias("first_line"),
            pl.coalesce(pl.col("completion_line").max(), pl.col("launch_line").max()).alias("last_line"),
            pl.len().alias("launches"),
            pl.col("launch_ns").min().alias("start_ns"),
            pl.col("completion_ns").max().alias("end_ns"),
        )
        .sort("source", "step")
        .tail(STEPS)
    )
    return tuple(
        StepSpan(input=source, **values)
        for row in spans.to_dicts()
        for source, values in [(row.pop("source"), row)]
    )

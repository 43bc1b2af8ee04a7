"""All reports of one result: ``(path, content)`` pairs, written by the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from analyzer.errors import UsageError
from analyzer.report import html, json, junit, markdown, perfetto, sarif
from analyzer.report.limits import fitted
from analyzer.report.redact import redacted
from analyzer.report.request import ReportContext, ReportKind, ReportRequest, kind_of, limit_of
from analyzer.schema import Result

__all__ = ["ReportContext", "ReportKind", "ReportRequest", "render_reports"]


def render_reports(
    result: Result, wanted: Sequence[ReportRequest], context: ReportContext
) -> list[tuple[Path, bytes]]:
    """Make the reports that are asked for.

    Args:
        result: The analysis.
        wanted: Reports, in any order; the same path may not stand twice.
        context: Raw lines, redaction and what else the result does not hold.

    Returns:
        One pair a request, in the order of the requests. Same input, same bytes.

    Raises:
        UsageError: An ending names no kind, a path stands twice, a size limit cannot be kept.
    """
    paths = [request.path for request in wanted]
    twice = sorted({str(path) for path in paths if paths.count(path) > 1})
    if twice:
        raise UsageError(f"--report {twice[0]}: the same file is asked for twice")
    kinds = [(request, kind_of(request)) for request in wanted]
    clean, safe = redacted(result, context)
    return [(request.path, _rendered(clean, safe, kind, limit_of(request))) for request, kind in kinds]


def _rendered(result: Result, context: ReportContext, kind: ReportKind, limit: int | None) -> bytes:
    match kind:
        case ReportKind.markdown:
            return fitted(result, context, markdown.render, limit)
        case ReportKind.html:
            return fitted(result, context, html.render, limit)
        case ReportKind.json:
            return _json(result, limit)
        case ReportKind.sarif:
            return sarif.render(result, context, limit)
        case ReportKind.junit:
            return junit.render(result)
        case ReportKind.perfetto:
            return perfetto.render(result, context, limit)


def _json(result: Result, limit: int | None) -> bytes:
    """The whole result; to keep a limit, unread texts move into their count."""
    data = json.render(result)
    if limit is None or len(data) <= limit:
        return data
    lost = result.losses_omitted + sum(loss.count for loss in result.losses)
    data = json.render(msgspec.structs.replace(result, losses=[], losses_omitted=lost))
    if len(data) > limit:
        raise UsageError(f"--report-limit {limit}: the JSON report needs {len(data)} bytes")
    return data

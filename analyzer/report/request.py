"""What a caller asks for: kinds of report, where they go, how large they may be, what the log still tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from analyzer.errors import UsageError
from analyzer.schema import OpRef, Value

GITHUB_COMMENT_BYTES = 65_536  # GitHub refuses a longer issue or comment (it counts characters: never more)
JOB_SUMMARY_BYTES = 1_048_576  # GitHub drops a larger step summary whole
HTML_BYTES = 2_000_000  # chat tools stop showing a page as an attachment somewhere above
LINE_CHARS = 400  # longest piece of a log line that a report shows


class ReportKind(StrEnum):
    """Which view of the result."""

    markdown = "markdown"
    html = "html"
    json = "json"
    sarif = "sarif"
    junit = "junit"
    perfetto = "perfetto"


_ENDINGS: tuple[tuple[str, ReportKind], ...] = (
    (".perfetto.json", ReportKind.perfetto),
    (".pftrace", ReportKind.perfetto),
    (".sarif.json", ReportKind.sarif),
    (".sarif", ReportKind.sarif),
    (".markdown", ReportKind.markdown),
    (".md", ReportKind.markdown),
    (".html", ReportKind.html),
    (".htm", ReportKind.html),
    (".json", ReportKind.json),
    (".xml", ReportKind.junit),
)

Excerpt = Callable[[int, int, int], Sequence[str]]
"""``(input, first line, last line)`` to the raw lines there, fewer where the file ends."""


def no_excerpt(source: int, first: int, last: int) -> Sequence[str]:
    """No raw text at hand (a result that was read back from JSON)."""
    del source, first, last
    return ()


class WindowOp(Value):
    """One launch of the window, inner ones too. Null times = the log has no clock for it."""

    op: OpRef
    depth: int = 0
    stream: str | None = None
    launch_ns: int | None = None
    completion_ns: int | None = None


class StepSpan(Value):
    """One step as the log shows it. Null times = no clock."""

    step: int
    first_line: int
    last_line: int
    launches: int
    input: int = 0
    start_ns: int | None = None
    end_ns: int | None = None


class ReportRequest(Value):
    """One report to make. ``kind`` null = by the ending of ``path``; ``limit_bytes`` null = by kind."""

    path: Path
    kind: ReportKind | None = None
    limit_bytes: int | None = None


class ReportContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the result does not hold.

    Args:
        excerpt: Raw lines of an input; ``sections.excerpts_wanted`` says beforehand which.
        redact: Replace names of people, hosts and paths, addresses and request texts.
        analysed_at: Time of the analysis as text. Null = not printed, so that equal input gives equal bytes.
        source_root: Folder that source paths are made relative to (SARIF wants relative URIs).
        window_ops: Launches of the window with stream, depth and times. Empty = as the result lists them.
        steps: Steps in order. Empty = not drawn.
    """

    excerpt: Excerpt = no_excerpt
    redact: bool = False
    analysed_at: str | None = None
    source_root: str | None = None
    window_ops: tuple[WindowOp, ...] = ()
    steps: tuple[StepSpan, ...] = ()


def kind_of(request: ReportRequest) -> ReportKind:
    """The kind asked for, else by the ending of the file name.

    Raises:
        UsageError: The ending names no kind.
    """
    if request.kind is not None:
        return request.kind
    name = request.path.name.lower()
    for ending, kind in _ENDINGS:
        if name.endswith(ending):
            return kind
    known = " ".join(ending for ending, _ in _ENDINGS)
    raise UsageError(
        f"--report {request.path}: the ending says no kind of report; use one of {known}, or --report-format"
    )


def limit_of(request: ReportRequest) -> int | None:
    """The size limit in bytes; null = none."""
    if request.limit_bytes is not None:
        return request.limit_bytes
    by_kind = {ReportKind.markdown: GITHUB_COMMENT_BYTES, ReportKind.html: HTML_BYTES}
    return by_kind.get(kind_of(request))

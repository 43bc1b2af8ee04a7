"""Keeping a report within a size: less detail first, then whole sections from the end, all counted."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from analyzer.errors import UsageError
from analyzer.report.request import ReportContext
from analyzer.report.sections import tell
from analyzer.report.story.telling import gap
from analyzer.report.story.values import FULL, LADDER, Detail, Paragraph, Section, SectionId, Story
from analyzer.schema import Result

# What a reader misses least goes first; the verdict stays.
LEAVING_ORDER: tuple[SectionId, ...] = (
    "appendix",
    "environment",
    "cascade",
    "ruled_out",
    "timeline",
    "author",
    "impact",
    "replay",
    "suspects",
    "next",
    "fault",
)
Render = Callable[[Story], str]


def fitted(result: Result, context: ReportContext, render: Render, limit_bytes: int | None) -> bytes:
    """The most detailed report that fits.

    Args:
        result: The analysis.
        context: What the result does not hold.
        render: A view of a story.
        limit_bytes: Largest size of the UTF-8 text; null = no limit.

    Raises:
        UsageError: Not even the verdict fits.
    """
    for detail in LADDER if limit_bytes is not None else (FULL,):
        story = tell(result, context, detail)
        data = encoded(render(story if detail == FULL else _noted(story, _shortened(detail))))
        if limit_bytes is None or len(data) <= limit_bytes:
            return data
    return _without_sections(story, render, limit_bytes or 0)


def _without_sections(story: Story, render: Render, limit_bytes: int) -> bytes:
    left: list[str] = []
    for leaving in LEAVING_ORDER:
        gone = [one.title for one in story.sections if one.id == leaving]
        if not gone:
            continue
        left += gone
        kept = tuple(one for one in story.sections if one.id != leaving)
        story = msgspec.structs.replace(story, sections=kept)
        told = f"Left out to keep within {limit_bytes:,} bytes, {len(left)} sections: {', '.join(left)}."
        data = encoded(render(_noted(story, told)))
        if len(data) <= limit_bytes:
            return data
    raise UsageError(f"--report-limit {limit_bytes}: not even the verdict fits; it needs {len(data)} bytes")


def _shortened(detail: Detail) -> str:
    return (
        f"Shortened to keep within the size limit: at most {detail.suspects} suspects in full, {detail.rows} "
        f"rows of a table and {detail.raw_lines} raw lines; what is left out is counted in its place."
    )


def _noted(story: Story, told: str) -> Story:
    """The note stands right after the verdict, where a reader sees it."""
    first, *others = story.sections
    note = Paragraph(sentences=(gap(told),))
    head = Section(id=first.id, title=first.title, blocks=(*first.blocks, note))
    return msgspec.structs.replace(story, sections=(head, *others))


def encoded(text: str) -> bytes:
    """UTF-8; a lone surrogate (half a character of a broken log) becomes an escape."""
    return text.encode("utf-8", errors="backslashreplace")

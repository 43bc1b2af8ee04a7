"""The skeleton of a post-mortem: the same sections in the same order in every view."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from analyzer.report.plain import plain
from analyzer.report.request import ReportContext
from analyzer.report.signature import signature
from analyzer.report.story.failure import cascade, fault, timeline
from analyzer.report.story.replayed import replay
from analyzer.report.story.surroundings import appendix, environment, excerpts_wanted, next_commands
from analyzer.report.story.suspicion import ruled_out, suspects
from analyzer.report.story.telling import Scene, accused_of, kind_words, root_of, scene_of, short
from analyzer.report.story.times import times
from analyzer.report.story.values import (
    FULL,
    Detail,
    Entries,
    Items,
    Paragraph,
    Picture,
    Section,
    Sentence,
    Story,
    Table,
)
from analyzer.report.story.verdict import author, confidence_word, impact, verdict
from analyzer.schema import Result

DEVICE_CHARS = 40
__all__ = ["claims", "excerpts_wanted", "tell"]


def tell(result: Result, context: ReportContext, detail: Detail = FULL) -> Story:
    """Everything that a report says about a result.

    Args:
        result: The analysis, redacted already if that is wanted.
        context: Raw lines and what else the result does not hold.
        detail: How much of each list to show; the rest is counted.
    """
    scene = scene_of(result, context, detail)
    made = signature(result)
    stamp = f", analysed {plain(context.analysed_at)}" if context.analysed_at else ""
    return Story(
        title=_title(result),
        inputs=scene.inputs,
        sections=tuple(_sections(scene)),
        signature=made.id if made else None,
        confidence=confidence_word(scene),
        footer=f"trace-analyze {plain(result.tool_version)}, schema {plain(result.schema_version)}{stamp}",
    )


def _title(result: Result) -> str:
    root = root_of(result)
    if root is None:
        return "Log analysis: no fault found" if not result.faults else "Log analysis: no root fault"
    accused = accused_of(result)
    device = root.device or (accused.op.device if accused else None)
    where = f" on {short(device, DEVICE_CHARS)}" if device else ""
    return f"Post-mortem: {kind_words(root)}{where}"


def _sections(scene: Scene) -> Iterator[Section]:
    yield verdict(scene)
    yield impact(scene)
    if scene.result.faults:
        yield timeline(scene)
        yield fault(scene)
    found = suspects(scene)
    timed = tuple(times(scene))
    if found is not None:
        yield msgspec.structs.replace(found, blocks=(*found.blocks, *timed))
    if scene.result.faults:
        yield replay(scene)
    for optional in (cascade(scene), ruled_out(scene)):
        if optional is not None:
            yield optional
    yield environment(scene)
    commands = next_commands(scene)
    if commands is not None:
        yield commands
    if scene.result.faults:
        yield author(scene)
    yield appendix(scene)


def claims(story: Story) -> Iterator[Sentence]:
    """Every sentence of a story; a table row counts as one fact. For checks of the citations."""
    for section in story.sections:
        for block in section.blocks:
            if isinstance(block, Paragraph | Items):
                yield from block.sentences
            elif isinstance(block, Entries):
                for entry in block.entries:
                    yield entry.head
                    yield from entry.body
            elif isinstance(block, Table):
                for row in block.rows:
                    parts = tuple(part for cell in row.cells for part in cell)
                    yield Sentence(parts=parts, kind=row.kind, cites=row.cites)
            elif isinstance(block, Picture) and block.note is not None:
                yield block.note

"""The ops that a plan is made of: those of the window, else the suspects, in launch order."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import polars as pl

from analyzer.ingest.reader import LineReader
from analyzer.model import OpDetail, OpFacts
from analyzer.parse.op_detail import CLOSING_STARTS
from analyzer.pipeline import Analysis
from analyzer.schema import OpRef, Suspect
from analyzer.timeline.facts import gather_facts
from analyzer.timeline.launches import is_kernel_launch

Detail = tuple[str, str]


class LoggedOp(msgspec.Struct, frozen=True, kw_only=True):
    """One outer op with all that its record says.

    ``details``: keys and values of its record as printed, in order, ``target`` first where the record
    begins with it. ``printed``: a value printer told the launch. ``suspect``: rank (null = none).
    """

    facts: OpFacts
    details: tuple[Detail, ...] = ()
    printed: bool = False
    suspect: int | None = None

    @property
    def name(self) -> str:
        """As in the log."""
        return self.facts.ref.name

    def detail(self, key: str) -> str | None:
        """Value of the first detail of that key, null = there is none."""
        return next((value for name, value in self.details if name == key), None)


def ops_of_window(analysis: Analysis) -> list[LoggedOp]:
    """The outer ops of the window; without one those of the lines asked for, or the suspects.

    An exact report has no window: its suspect is the op. A suspect that no op record tells (an error text
    names it) has no line of its own.
    """
    result = analysis.result
    asked = analysis.options.window if result.window is None else None
    refs = result.window.ops if result.window else [] if asked else [one.op for one in result.suspects]
    ranks = {_key(one.op): one.rank for one in result.suspects if one.op.line is not None}
    found: list[LoggedOp] = []
    for source, process in dict.fromkeys((one.input, one.process) for one in refs if one.line is not None):
        lines = {one.line for one in refs if (one.input, one.process) == (source, process) and one.line}
        own = (pl.col("source") == source) & (pl.col("process") == process)
        found.extend(_logged(analysis, analysis.timeline.ops.filter(own), lines))
    if asked is not None:
        found.extend(_asked_for(analysis, *asked))
    ranked = [msgspec.structs.replace(one, suspect=ranks.get(_key(one.facts.ref))) for one in found]
    return ranked + [_unlogged(one) for one in result.suspects if one.op.line is None]


def _key(ref: OpRef) -> tuple[int, str, int | None]:
    return ref.input, ref.process, ref.line


def _asked_for(analysis: Analysis, first: int, last: int) -> Iterable[LoggedOp]:
    inside = analysis.timeline.ops.filter(pl.col("launch_line").is_between(first, last))
    for ops in inside.partition_by("source", "process", maintain_order=True):
        lines = set(ops.filter(pl.col("parent").is_null())["launch_line"].to_list())
        yield from _logged(analysis, ops, lines)


def _logged(analysis: Analysis, ops: pl.DataFrame, lines: set[int]) -> list[LoggedOp]:
    """Ops of one process by their launch lines. Rows that they enclose are needed for their shapes."""
    line = pl.col("launch_line")
    wanted = line.is_in(sorted(lines))
    chosen = ops.filter(wanted)
    if chosen.is_empty():
        return []
    last = max(chosen["launch_line"].max(), chosen["completion_line"].max() or 0)  # type: ignore[type-var]
    first = chosen["launch_line"].min()
    inner = line.is_between(first, last) & pl.col("parent").is_not_null()
    inside = ops.filter(wanted | inner)
    reader = analysis.known.readers[int(chosen["source"][0])]
    facts = gather_facts(inside, ops.clear(), reader, analysis.known.types)
    rows = {
        int(row["launch_line"]): row for row in chosen.with_columns(printed=is_kernel_launch()).to_dicts()
    }
    return [
        LoggedOp(facts=one, details=_details(rows[one.launch_line], reader), printed=row["printed"])
        for one in facts
        if (row := rows.get(one.launch_line)) is not None
    ]


def _details(row: dict[str, object], reader: LineReader) -> tuple[Detail, ...]:
    """Of the head line, or of the closing line below the frames."""
    head = str(row["detail"] or "").strip()
    texts = [head] if head else []
    last = row["body_last"]
    if not head and isinstance(last, int) and not row["printed"]:
        own = [line.text for line in reader.lines(last, last) if line.process == row["process"]]
        texts = [text for text in own if text.startswith(CLOSING_STARTS)]
    return tuple(split_details(";".join(texts)))


def split_details(text: str) -> Iterable[Detail]:
    """``self=4x8xfloat32;dim=0`` as pairs. A value holds no semicolon (``record`` replaces them)."""
    for part in text.rstrip().split(";"):
        key, found, value = part.partition("=")
        if found:
            yield key, value


def _unlogged(suspect: Suspect) -> LoggedOp:
    """A suspect that only an error text names."""
    facts = OpFacts(
        ref=suspect.op,
        launch_line=0,
        completion_line=None,
        run=0,
        expr=None,
        leaves=(suspect.op.name,),
        detail=OpDetail(device=suspect.op.device),
        tensors=tuple(suspect.tensors),
        source=tuple(suspect.source),
    )
    return LoggedOp(facts=facts, suspect=suspect.rank)

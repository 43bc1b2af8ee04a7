"""Faults of a device that left marks: the first launch that a stream had not finished is the one."""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.knowledge import Finding, Knowledge
from analyzer.model import FaultRecord, OpFacts
from analyzer.schema import Conclusion, Reason, Suspect
from analyzer.suspects.index_values import BadIndex, bad_index_of
from analyzer.suspects.rank import rank
from analyzer.traits import is_sticky
from analyzer.verdict import conclude
from analyzer.window.marks import PROOF, MarkedWindow, marked_window

_WEIGHT = 6.0
_UNLIKELY = -1.0  # of the family against the kind: what never fails so by itself


def of_marks(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame) -> Finding | None:
    """What marks say about a fault of the device; null = it is none, or there are no marks."""
    if not is_sticky(fault) or known.lines_window is not None:
        return None
    marked = marked_window(known, fault, ops)
    if marked is None:
        return None
    reason = Reason(
        evidence=PROOF,
        text="the first launch of its stream that the device had not finished",
        weight=_WEIGHT,
        lines=marked.lines[:1],
    )
    before = ops.height - marked.window.size
    suspects = [
        msgspec.structs.replace(
            one, reasons=[reason, *one.reasons], weight=round(one.weight + reason.weight, 3)
        )
        for one in rank(marked.first, fault, before)
    ]
    conclusion = _conclusion(fault, suspects, marked)
    return Finding(conclusion=conclusion, suspects=suspects, window=marked.window, cleared=marked.cleared)


def _conclusion(fault: FaultRecord, suspects: list[Suspect], marked: MarkedWindow) -> Conclusion:
    first = next(op for op in marked.first if op.ref == suspects[0].op)
    bad = bad_index_of(first)
    why = _why(first, bad, marked)
    if bad is not None or (len(suspects) == 1 and not _is_unlikely(suspects[0])):
        found = conclude.proven(fault, suspects[0], why)
        return msgspec.structs.replace(found, notes=_notes(bad, marked, first))
    if len(suspects) == 1:
        found = conclude.by_share(fault, suspects, marked.window, "ranked")
        note = (
            f"{first.ref.name} seldom fails so: a launch outside the log can stand before it, of an extension"
            " that calls the driver by itself (a GPU core dump names its kernel)"
        )
        return msgspec.structs.replace(found, notes=[note])
    found = conclude.by_share(fault, suspects, marked.window, None)
    note = f"{len(suspects)} streams had a launch that was not finished: one of these failed, the others wait"
    return msgspec.structs.replace(found, notes=[note])


def _why(first: OpFacts, bad: BadIndex | None, marked: MarkedWindow) -> str:
    told = f"the device had finished all launches of its stream before it (line {marked.lines[0]})"
    replay = marked.inside_graph.get(first.launch_line)
    if replay is not None:
        told = f"it is the first op that the replay of its CUDA graph (id {replay.ref.id}) had not finished"
    return f"{bad.words}; {told}" if bad is not None else told


def _notes(bad: BadIndex | None, marked: MarkedWindow, first: OpFacts) -> list[str]:
    notes = []
    if bad is not None and bad.writer is not None:
        notes.append(f"`{bad.index}` was written by the op with id {bad.writer}")
    if first.launch_line in marked.inside_graph:
        notes.append("it was launched by the replay of a CUDA graph: its lines are those of the capture")
    return notes


def _is_unlikely(suspect: Suspect) -> bool:
    return any(one.evidence == "family" and one.weight <= _UNLIKELY for one in suspect.reasons)

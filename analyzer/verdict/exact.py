"""Faults whose text names the op: exact reports, host errors, NaN checks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.knowledge import Finding, Knowledge, Row
from analyzer.model import FaultRecord, OpDetail, OpFacts, TrustDecision
from analyzer.schema import Cleared, OpRef, Reason, SourceFrame, Suspect
from analyzer.suspects.join import ops_with_stacks
from analyzer.suspects.producers import makes_values, writers_of
from analyzer.suspects.rank import named
from analyzer.tables.families import families
from analyzer.timeline.facts import gather_facts, op_ref, user_frame
from analyzer.verdict import conclude
from analyzer.window.opened import WINDOW_LIMIT, launches

_HOST_CODE = "python_traceback"


def names_a_launch(fault: FaultRecord) -> bool:
    """The text names a kernel, or the Python line that launched one (observed.md 21)."""
    return fault.kernel is not None or (fault.site == "launch" and fault.python is not None)


def op_that_raised(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame) -> Row | None:
    """The op whose call was left with this error: begun, never completed, made at the line that raised.

    A PyTorch op log (``trace-analyze record``) writes no completion for an op that raised. The line must
    agree too: a log can also lack a completion because it was cut. Where no line of the user's is in the
    traceback (``python -c``, a prompt), its innermost frame is the recorder's own call of the op.
    """
    if fault.python is None or ops.is_empty() or ops["source"][0] != fault.source:
        return None
    before = ops.filter((pl.col("launch_line") < fault.line) & pl.col("parent").is_null())
    last = before.tail(1)
    if last.is_empty() or last["completion_line"][0] is not None:
        return None
    row = last.row(0, named=True)
    if _is_call_of_op(fault.python):
        return row
    place = (fault.python.file.rsplit("/", 1)[-1], fault.python.line)
    made = {(frame.file.rsplit("/", 1)[-1], frame.line) for frame in _facts_of_row(known, ops, row).source}
    return row if place in made else None


def _is_call_of_op(frame: SourceFrame) -> bool:
    """The frame in which the recorder calls an op, or torch's own below it."""
    return frame.file.replace("\\", "/").endswith(("record/ops/mode.py", "torch/_ops.py"))


def exact_report(
    known: Knowledge, fault: FaultRecord, trust: TrustDecision, ops: pl.DataFrame, reported: Row | None
) -> Finding:
    """A synchronous report, or an error that host code raised: the op named is the op."""
    facts = _facts_of_row(known, ops, reported) if reported is not None else facts_of_fault(fault)
    reason = Reason(evidence="exact_report", text=trust.reason, weight=8.0, lines=[fault.line])
    made = _made_index(known, ops, facts)
    suspect = _with_fault_source(named(facts, [reason, *made]), fault)
    conclusion = conclude.proven(fault, suspect, trust.reason)
    if made:
        notes = [*conclusion.notes, *(f"{facts.ref.name} can be the messenger: {one.text}" for one in made)]
        conclusion = msgspec.structs.replace(conclusion, notes=notes)
    return Finding(
        conclusion=conclusion,
        suspects=[suspect],
        cleared=all_but(ops, 1, "an exact report names another op"),
    )


def _made_index(known: Knowledge, ops: pl.DataFrame, facts: OpFacts) -> list[Reason]:
    """Who wrote the integers that a failed op was given."""
    reasons = []
    for writer in writers_of(facts):
        rows = ops.filter((pl.col("id") == writer.id) & (pl.col("run") == facts.run))
        rows = rows.filter(pl.col("launch_line") < facts.launch_line)
        if rows.is_empty() or not makes_values(str(rows["name"][0])):
            continue
        maker = _facts_of_row(known, ops, rows.row(0, named=True))
        text = f"its operand {writer.words} was written by {conclude.place(maker.ref, maker.source)}"
        lines = [maker.launch_line, facts.launch_line]
        reasons.append(Reason(evidence="producer", text=text, weight=0.0, lines=lines))
    return reasons


def _facts_of_row(known: Knowledge, ops: pl.DataFrame, row: Row) -> OpFacts:
    line = int(str(row["launch_line"]))
    end = int(str(row["completion_line"] or line))
    inside = ops.filter(pl.col("launch_line").is_between(line, end) & (pl.col("run") == row["run"]))
    own = ((pl.col("id") == row["id"]) & (pl.col("launch_line") == line)) | pl.col("parent").is_not_null()
    before = ops.filter(pl.col("launch_line") < line)
    return gather_facts(inside.filter(own), before, known.readers[int(str(row["source"]))], known.types)[0]


def facts_of_fault(fault: FaultRecord) -> OpFacts:
    """An op known from the error text only: no id, no line of its own."""
    name = _name_of_fault(fault)
    frames = [frame for stack in fault.stacks if (frame := user_frame(stack))]
    return OpFacts(
        ref=OpRef(
            name=name, id=None, process=fault.process, input=fault.source, line=None, device=fault.device
        ),
        launch_line=fault.line,
        completion_line=None,
        run=0,
        expr=None,
        leaves=(name,),
        detail=OpDetail(stacks=fault.stacks),
        source=tuple(dict.fromkeys(frames)) or _launching_line(fault),
    )


def _launching_line(fault: FaultRecord) -> tuple[SourceFrame, ...]:
    """The Python line whose launch call returned the error."""
    return (fault.python,) if fault.site == "launch" and fault.python is not None else ()


def _name_of_fault(fault: FaultRecord) -> str:
    if fault.fusion is not None and not fault.fusion.children:
        return fault.fusion.name
    if fault.kernel is None and fault.site == "launch" and fault.python is not None:
        return f"the call in {fault.python.function}"
    return (fault.kernel or fault.name or fault.kind).removeprefix("__")


def _with_fault_source(suspect: Suspect, fault: FaultRecord) -> Suspect:
    """Source frames of the error text carry the source line; prefer them over those of the op record."""
    told = {(f.file.rsplit("/", 1)[-1], f.line): f for stack in fault.stacks for f in stack}
    frames = [told.get((f.file.rsplit("/", 1)[-1], f.line), f) for f in suspect.source]
    if not frames:
        frames = [frame for stack in fault.stacks if (frame := user_frame(stack))]
    return msgspec.structs.replace(suspect, source=list(dict.fromkeys(frames)))


def all_but(ops: pl.DataFrame, guilty: int, reason: str) -> Cleared:
    """All launches but the guilty ones, for one common reason."""
    count = max(0, ops.height - guilty)
    return Cleared(count=count, ops=[], reasons=[f"{launches(count)}: {reason}"] if count else [])


def nan_check(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame, reported: Row | None) -> Finding:
    """The NaN check is the messenger; the producer is the op made by the stacks of its source traceback."""
    messenger = op_ref(reported) if reported is not None else None
    producers: list[OpFacts] = []
    if reported is not None:
        step = ops.filter(pl.col("launch_line") < int(str(reported["launch_line"]))).tail(WINDOW_LIMIT)
        if reported["step"] is not None:
            step = step.filter(pl.col("step") == reported["step"])
        facts = gather_facts(step, ops.clear(), known.readers[int(str(reported["source"]))], known.types)
        others = [op for op in facts if not _is_nan_check(op)]
        producers = ops_with_stacks(fault.stacks, others)
    why = f"the NaN check read its output back and counted them (line {fault.line})"
    reason = Reason(evidence="nan_check", text=why, weight=8.0, lines=[fault.line])
    facts_of = producers[-1] if producers else _producer_of_fault(fault)
    if facts_of is None:
        return Finding(conclusion=conclude.proven(fault, None, why, messenger))
    suspect = _with_fault_source(named(facts_of, [reason]), fault)
    frames = _domain_first(fault, suspect.source)
    suspect = msgspec.structs.replace(suspect, source=frames)
    return Finding(conclusion=conclude.proven(fault, suspect, why, messenger), suspects=[suspect])


def _is_nan_check(op: OpFacts) -> bool:
    return any(leaf.startswith("custom__nan_check") for leaf in op.leaves)


def _producer_of_fault(fault: FaultRecord) -> OpFacts | None:
    """Known by its label; a check that compiled code makes itself stands under the line that called it.

    A check in eager code (torch.multinomial) names its own line, not that of the producer.
    """
    compiled = fault.kernel is None and fault.python is not None and fault.witness != _HOST_CODE
    if not fault.stacks and not compiled:
        return None
    facts = facts_of_fault(fault)
    if compiled and not facts.source and fault.python is not None:
        facts = msgspec.structs.replace(facts, source=(fault.python,))
    label = (fault.label or "checked output").strip()
    return msgspec.structs.replace(facts, ref=msgspec.structs.replace(facts.ref, name=f"producer of {label}"))


def _domain_first(fault: FaultRecord, frames: Sequence[SourceFrame]) -> list[SourceFrame]:
    """Source lines of ops that can make a NaN of sound inputs (log, sqrt, division) come first."""
    risky = set()
    for stack in fault.stacks:
        frame = user_frame(stack)
        words = [stack[-1].function, *_call_words(frame)]
        if frame is not None and "nan_domain" in families(words):
            risky.add((frame.file, frame.line))
    return sorted(frames, key=lambda frame: (frame.file, frame.line) not in risky)


def _call_words(frame: SourceFrame | None) -> list[str]:
    """Names called in a source line: ``ops.sqrt(flat - 1e6)`` gives ``sqrt``."""
    text = (frame.text or "") if frame else ""
    return [part.rsplit(".", 1)[-1].split()[-1] for part in text.split("(")[:-1] if part.split()]

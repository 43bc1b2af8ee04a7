"""The conclusion: one sentence, with a confidence word of fixed meaning (design.md rule 7)."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.model import FaultRecord
from analyzer.schema import Conclusion, Confidence, Modes, OpRef, SourceFrame, Suspect, Window
from analyzer.suspects.rank import LIKELY_SHARE
from analyzer.tables.kinds import BY_NAME
from analyzer.verdict.cause import is_sent

UNTAGGED_WRITERS = "two writers without tags share this log; which of them an op belongs to is inferred"


def kind_words(kind: str) -> str:
    """The kind as a person says it."""
    return BY_NAME[kind].words


def fault_words(fault: FaultRecord) -> str:
    """The fault as a person says it; one without a kind is told by the words that its witness has for it."""
    told = fault.name or ""
    if is_sent(fault):
        return f"end of the process by {told}"
    return told if fault.kind == "unknown" and " " in told else kind_words(fault.kind)


def place(op: OpRef, frames: Sequence[SourceFrame] = ()) -> str:
    """``custom__paged_lookup (id 302, step 9, made at max_steps.py:30)``."""
    parts = [f"id {op.id}"] if op.id is not None else []
    if op.step is not None:
        parts.append(f"step {op.step}")
    if frames:
        parts.append(f"made at {frames[0].file.rsplit('/', 1)[-1]}:{frames[0].line}")
    return f"{op.name} ({', '.join(parts)})" if parts else op.name


def no_fault(modes: Modes, ops: int) -> Conclusion:
    """A clean log: say what it does and does not prove (observed.md 16, 17)."""
    notes = [
        f"line {one.line}: only {one.checked} of {one.of} float outputs of graph {one.graph} were NaN-checked"
        f" (stride {one.stride}): this run does not show that the others are free of NaN"
        for one in modes.nan_check
        if one.checked < one.of
    ]
    notes.append("a small out-of-bounds access in pooled memory raises no error: outputs can still be wrong")
    seen = f"{ops} op launches and no error text" if ops else "no error text that a witness knows"
    return Conclusion(
        confidence="none", cause_class=None, suspect=None, statement=f"No fault found: {seen}.", notes=notes
    )


def probable(fault: FaultRecord) -> Conclusion:
    """An error right before the end of its process: nobody says that it died of that."""
    what = fault_words(fault)
    return Conclusion(
        confidence="likely",
        cause_class=None,
        suspect=None,
        statement=f"The process ended right after this {what}, its probable cause: {fault.text}",
    )


def undecided(fault: FaultRecord, why: str) -> Conclusion:
    """Nothing in the log can tell: name nobody."""
    unless = ", unless launches were blocking" if fault.async_hint is False else ""
    verb = "explained" if is_sent(fault) else "placed"
    where = f" The kernel it names ({fault.kernel}) only met the error{unless}." if fault.kernel else ""
    return Conclusion(
        confidence="undecided",
        cause_class=None,
        suspect=None,
        statement=f"The {fault_words(fault)} cannot be {verb} from this log: {why}.{where}",
    )


def by_share(
    fault: FaultRecord, suspects: Sequence[Suspect], window: Window, cap: Confidence | None
) -> Conclusion:
    """Late report with an op log: likely if the first suspect holds over half of the weight."""
    first = suspects[0]
    confidence: Confidence = "likely" if first.share > LIKELY_SHARE else "ranked"
    if cap == "ranked":
        confidence = "ranked"
    verb = "likely caused" if confidence == "likely" else "is the first suspect for"
    among = f"{window.size_outer} ops that can be guilty"
    statement = (
        f"{place(first.op, first.source)} {verb} the {fault_words(fault)}: "
        f"{first.share:.0%} of the suspicion over {among}. The report itself came late."
    )
    return Conclusion(confidence=confidence, cause_class=None, suspect=1, statement=statement)


def proven_name(fault: FaultRecord, suspect: Suspect, why: str) -> Conclusion:
    """The op is proven, which of its launches is not: the sentence names no id."""
    statement = f"{suspect.op.name} caused the {fault_words(fault)}: {why}."
    return Conclusion(confidence="proven", cause_class=None, suspect=1, statement=statement)


def messenger(fault: FaultRecord, suspects: Sequence[Suspect], met: OpRef, why: str) -> Conclusion:
    """The op that faulted is known, and another one made what it read."""
    first = suspects[0]
    statement = (
        f"{place(first.op, first.source)} is the first suspect for the {kind_words(fault.kind)}: it wrote the"
        f" integers that {place(met)} read when it faulted. {why[0].upper()}{why[1:]}."
    )
    return Conclusion(
        confidence="ranked",
        cause_class=None,
        suspect=1,
        statement=statement,
        messenger=met,
        notes=["which of the two is wrong is not proven: print the integers between them"],
    )


def one_of(fault: FaultRecord, suspects: Sequence[Suspect], why: str) -> Conclusion:
    """A witness names a kernel that several ops can have launched."""
    first = suspects[0]
    statement = (
        f"{place(first.op, first.source)} is the first of {len(suspects)} ops that can have launched the "
        f"kernel with the {fault_words(fault)}: {why}."
    )
    return Conclusion(confidence="ranked", cause_class=None, suspect=1, statement=statement)


def proven(
    fault: FaultRecord, suspect: Suspect | None, why: str, messenger: OpRef | None = None
) -> Conclusion:
    """A device-side witness or an exact report names it."""
    what = fault_words(fault)
    if suspect is None:
        statement = f"{what[0].upper()}{what[1:]}: {fault.text}"
    else:
        statement = f"{place(suspect.op, suspect.source)} caused the {what}: {why}."
    return Conclusion(
        confidence="proven",
        cause_class=None,
        suspect=1 if suspect else None,
        statement=statement,
        messenger=messenger,
    )

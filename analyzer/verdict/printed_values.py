"""Faults that printed tensor values show, and faults that they place (observed.md 29-34).

NaN and Inf in what a kernel left, indices outside what they index; who made them, and how sure that is.
"""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.knowledge import Finding, Knowledge
from analyzer.model import FaultRecord
from analyzer.schema import Conclusion, Confidence, OpRef, Reason, Suspect
from analyzer.suspects.rank import named
from analyzer.traits import is_sticky
from analyzer.values.bad_indices import (
    bad_index,
    indexes_with_inputs,
    outside,
    outside_one,
)
from analyzer.values.faults import NAME, WORDS, bound, can_have_failed, flaws
from analyzer.values.flaws import Flaw, Origin
from analyzer.values.launches import (
    ProcessKernels,
    facts_of_launch,
    kernels_of,
    owner_of,
)
from analyzer.verdict import conclude
from analyzer.verdict.exact import all_but
from analyzer.verdict.read_back import of_blocking, of_read_back

_MADE = {"nan": "made a NaN", "index": "made a bad index"}


def printed_fault(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame) -> Finding | None:
    """What printed values say about a fault, or null: nothing that another case does not say better."""
    owner = owner_of(fault, ops)
    kernels = kernels_of(known, *owner) if owner else None
    if kernels is None:
        return None
    if fault.witness == NAME:
        flaw = next((one for one in flaws(kernels) if one.line == fault.line), None)
        return _of_flaw(kernels, fault, flaw, ops) if flaw else None
    if fault.state is not None:
        return None
    if (flaw := _failed_check(kernels, fault)) is not None:
        return _of_flaw(kernels, fault, flaw, ops)
    if is_sticky(fault):
        return of_read_back(kernels, fault, ops) or of_blocking(kernels, fault, ops)
    return None


def _failed_check(kernels: ProcessKernels, fault: FaultRecord) -> Flaw | None:
    """The printed index that a bounds check of Inductor refused; its text has the extent (observed.md 35)."""
    extent = bound(fault.text)
    if extent is None:
        return None
    left = can_have_failed(kernels, fault)
    if left.height != 1 or not indexes_with_inputs(left["kernel"][0]):
        return None
    prints, launch = kernels.pairs(), kernels.launch(left["id"][0])
    wrong = outside_one(prints, launch, extent)
    row = next((row for row in prints.given_to(launch.id) if wrong and row["line"] == wrong.line), None)
    if wrong is None or row is None or (value := outside(wrong, extent)) is None:
        return None
    return bad_index(prints, row, value, extent)


def _of_flaw(kernels: ProcessKernels, fault: FaultRecord, flaw: Flaw, ops: pl.DataFrame) -> Finding:
    """The kernel that made the bad value; who was given it is the messenger."""
    origin = flaw.origin
    shown = facts_of_launch(kernels, flaw.launch, ops)
    lines = sorted({flaw.line, origin.line})
    story = _story(kernels, flaw)
    reason = Reason(evidence="printed_values", text=story, weight=8.0 if flaw.sure else 3.0, lines=lines)
    if origin.who == "kernel" and origin.launch is not None and origin.launch != flaw.launch:
        accused, messenger = facts_of_launch(kernels, origin.launch, ops), shown.ref
    elif flaw.kind == "index" or origin.who == "kernel":
        accused, messenger = shown, None
    else:
        return Finding(conclusion=_of_outsider(fault, story, shown.ref, flaw))
    suspect = named(accused, [reason])
    return Finding(
        conclusion=_conclusion(fault, suspect, story, messenger, flaw),
        suspects=[suspect],
        cleared=all_but(ops, 1, "the printed values name another launch"),
    )


def _conclusion(
    fault: FaultRecord, suspect: Suspect, story: str, messenger: OpRef | None, flaw: Flaw
) -> Conclusion:
    proven = conclude.proven(fault, suspect, story, messenger)
    confidence: Confidence = "proven" if flaw.sure else "likely"
    who = conclude.place(suspect.op, suspect.source)
    told = "was given a bad index" if flaw.kind == "index" and messenger is None else _MADE[flaw.kind]
    return msgspec.structs.replace(
        proven, confidence=confidence, statement=f"{who} {told}: {story}.", notes=[*proven.notes, *flaw.notes]
    )


def _of_outsider(fault: FaultRecord, story: str, shown: OpRef, flaw: Flaw) -> Conclusion:
    """The caller gave the bad value, and no kernel is to blame; or it cannot be told who made it."""
    if flaw.origin.who == "caller":
        proven = conclude.proven(fault, None, story, shown)
        confidence: Confidence = "proven" if flaw.sure else "likely"
        text = f"The caller passed it in: {story}."
        return msgspec.structs.replace(proven, statement=text, confidence=confidence, notes=list(flaw.notes))
    unknown = conclude.undecided(msgspec.structs.replace(fault, kernel=None), story)
    return msgspec.structs.replace(unknown, messenger=shown, notes=[*unknown.notes, *flaw.notes])


def _story(kernels: ProcessKernels, flaw: Flaw) -> str:
    """What happened, in one sentence with lines."""
    origin, at = flaw.origin, _where(kernels, flaw.launch)
    what = WORDS[flaw.kind]
    if flaw.kind == "index":
        limit = (
            f"{flaw.table} with {flaw.extent} rows"
            if flaw.table
            else f"the {flaw.extent} rows that the failed check tells"
        )
        bad = f"{flaw.arg} held {flaw.value:.15g} before {at} (line {flaw.line}), outside {limit}"
        return f"{bad}; {_maker(kernels, origin)}"
    if origin.launch == flaw.launch:
        left = f"its output {flaw.arg} held {what} after the launch (line {flaw.line})"
        others = "no input that was printed did" if flaw.sure else "nothing that is known as its input did"
        return f"{left}, and {others}"
    if flaw.cut:
        held = f"{flaw.arg} held {what} after {at} (line {flaw.line})"
        return f"{held}, and the log begins inside this execution: what was printed above is not known"
    maker = _maker(kernels, origin, WORDS[flaw.came_as or flaw.kind])
    return f"{maker}, before it reached {flaw.arg} of {at} (line {flaw.line})"


def _maker(kernels: ProcessKernels, origin: Origin, what: str | None = None) -> str:
    held = f" with {what}" if what else ""
    if origin.who == "kernel" and origin.launch is not None:
        return f"{origin.arg}{held} was written by {_where(kernels, origin.launch)} (line {origin.line})"
    if origin.who == "caller":
        return f"{origin.arg}{held} is an input that the caller passed (line {origin.line})"
    return f"{origin.arg}{held} was written by a launch whose output is not printed (line {origin.line})"


def _where(kernels: ProcessKernels, launch: int) -> str:
    row = kernels.launches.filter(pl.col("id") == launch).row(0, named=True)
    return f"{row['kernel']} (id {launch})"

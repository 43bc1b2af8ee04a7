"""Faults that printed tensor values show, and faults that they place (observed.md 29-34).

NaN and Inf in what a kernel left, indices outside what they index; who made them, and how sure that is.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl

from analyzer.diagnosis.kernel_log import ProcessKernels, facts_of_launch, kernels_of, owner_of, processes
from analyzer.diagnosis.knowledge import Finding, Knowledge
from analyzer.diagnosis.named import all_but
from analyzer.diagnosis.read_back import PRINTER as NAME
from analyzer.diagnosis.read_back import of_blocking, of_read_back, unproven
from analyzer.faults.sticky import is_sticky
from analyzer.model import FaultRecord
from analyzer.numbers import integer
from analyzer.schema import Conclusion, Confidence, OpRef, Reason, Suspect
from analyzer.suspects import conclude
from analyzer.suspects.index_evidence import (
    bad_index,
    find_bad_index,
    indexes_with_inputs,
    outside,
    outside_one,
)
from analyzer.suspects.prints import Prints
from analyzer.suspects.rank import named
from analyzer.suspects.tensor_evidence import Flaw, Origin, find_bad_value

_WORDS = {"nan": "NaN", "inf": "Inf", "index": "index"}
_MADE = {"nan": "made a NaN", "index": "made a bad index"}
_BOUNDS = "index out of bounds: 0 <= "


def with_printed_faults(known: Knowledge) -> Knowledge:
    """The records with the faults that only printed values show, by line."""
    found = [
        _record(kernels, flaw)
        for source, process in processes(known)
        if (kernels := kernels_of(known, source, process)) is not None
        for flaw in _flaws(kernels)
    ]
    if not found:
        return known
    records = sorted([*known.records, *found], key=lambda record: (record.source, record.line))
    return msgspec.structs.replace(known, records=records)


def _flaws(kernels: ProcessKernels) -> Iterator[Flaw]:
    """Bad values that are faults."""
    prints = kernels.pairs()
    bad = find_bad_value(prints)
    if bad is not None and kernels.interleaved():
        notes = (*bad.notes, "several writers without tags share this log: whose value it is can be wrong")
        bad = msgspec.structs.replace(bad, sure=False, notes=notes)
    if bad is not None and (bad.sure or kernels.limit is None):  # a doubt explains no fault of the device
        yield bad
    yield from _bad_indices(kernels, prints)


def _bad_indices(kernels: ProcessKernels, prints: Prints) -> Iterator[Flaw]:
    """Bad indices: proven by a failure that can follow from one, at a launch that can have failed.

    A kernel that the log goes on after read its index and lived. Out of memory, a lost peer, an exception of
    the server follow from no index: where one of them is in the log, it stands for itself.
    """
    others = [record for record in _records(kernels) if record.witness != NAME]
    check = next((record for record in others if _bound(record.text) is not None), None)
    if check is not None:
        among = _can_have_failed(kernels, check)["id"].to_list()
        yield from find_bad_index(prints, kernels.launch, among=among, bound=_bound(check.text))
    elif kernels.limit is not None:
        yield from find_bad_index(prints, kernels.launch, among=unproven(kernels)["id"].to_list())
    elif not others:
        notes = ("nothing failed afterwards: what the kernel read there was wrong",)
        for flaw in find_bad_index(prints, kernels.launch):
            yield msgspec.structs.replace(flaw, sure=False, notes=notes)


def _records(kernels: ProcessKernels) -> Iterator[FaultRecord]:
    """Faults of the process, and those of nobody in particular."""
    for record in kernels.known.records:
        if record.source == kernels.source and record.process in (kernels.process, ""):
            yield record


def _can_have_failed(kernels: ProcessKernels, check: FaultRecord) -> pl.DataFrame:
    """Launches that a failed bounds check can be of: the last one of the kernel that it names."""
    left = kernels.launches.filter(pl.col("line") < check.line)
    if check.kernel is not None:
        return left.filter(pl.col("kernel") == check.kernel).tail(1)
    return left.filter(pl.col("id").is_in(unproven(kernels)["id"].implode()))


def _record(kernels: ProcessKernels, flaw: Flaw) -> FaultRecord:
    """The flaw as a fault of the host's own check: the values were read back."""
    launch = kernels.launches.filter(pl.col("id") == flaw.launch).row(0, named=True)
    times = f", launch {launch['occurrence']} of that name"
    if flaw.kind == "index":
        text = (
            f"{flaw.arg} holds {flaw.value:.15g} before {launch['kernel']}{times}: outside {flaw.table} with "
            f"{flaw.extent} rows"
        )
    else:
        text = f"{_WORDS[flaw.kind]} in {flaw.arg} after {launch['kernel']}{times}"
    return FaultRecord(
        source=kernels.source,
        process=kernels.process,
        line=flaw.line,
        last_line=flaw.line,
        block_first=flaw.line,
        text=text,
        witness=NAME,
        kind="input_check" if flaw.kind == "index" else "nan",
        site="host",
        time_ns=launch["time_ns"],
        kernel=launch["kernel"],
    )


def printed_fault(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame) -> Finding | None:
    """What printed values say about a fault, or null: nothing that another case does not say better."""
    owner = owner_of(fault, ops)
    kernels = kernels_of(known, *owner) if owner else None
    if kernels is None:
        return None
    if fault.witness == NAME:
        flaw = next((one for one in _flaws(kernels) if one.line == fault.line), None)
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
    bound = _bound(fault.text)
    if bound is None:
        return None
    left = _can_have_failed(kernels, fault)
    if left.height != 1 or not indexes_with_inputs(left["kernel"][0]):
        return None
    prints, launch = kernels.pairs(), kernels.launch(left["id"][0])
    wrong = outside_one(prints, launch, bound)
    row = next((row for row in prints.given_to(launch.id) if wrong and row["line"] == wrong.line), None)
    if wrong is None or row is None or (value := outside(wrong, bound)) is None:
        return None
    return bad_index(prints, row, value, bound)


def _bound(text: str) -> int | None:
    """The extent in ``index out of bounds: 0 <= tmp4 < 1000``."""
    _, found, rest = text.partition(_BOUNDS)
    digits = rest.partition(" < ")[2]
    length = len(digits) - len(digits.lstrip("0123456789"))
    return integer(digits[:length]) if found else None


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
    what = _WORDS[flaw.kind]
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
    maker = _maker(kernels, origin, _WORDS[flaw.came_as or flaw.kind])
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

"""Which launch a fault belongs to, by what was read back and named before it (observed.md 30-32).

A value that was read back proves all earlier work of its stream sound: the launch whose read-back failed is
the only one left. Names alone (level 3) prove nothing, unless launches were blocking.
"""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.knowledge import Finding
from analyzer.model import FaultRecord
from analyzer.schema import Border, Reason
from analyzer.suspects.rank import named, rank
from analyzer.values.bad_indices import large_integers
from analyzer.values.blocking import BLOCKING, interrupted, is_blocking, names_lost
from analyzer.values.faults import last_read_back, unproven
from analyzer.values.launches import ProcessKernels, facts_of_launch
from analyzer.verdict import conclude
from analyzer.verdict.exact import all_but
from analyzer.window.borders import Span
from analyzer.window.opened import open_span

_RETURNED = "with blocking launches each had returned before the fault"
_RANKED = 200  # launches whose tensors are read
_READ_BACK = "a value read back after it was sound"


def of_read_back(kernels: ProcessKernels, fault: FaultRecord, ops: pl.DataFrame) -> Finding | None:
    """Level 1 or 2: what was launched since the last value that was read back."""
    proof = last_read_back(kernels)
    if proof is None or kernels.interleaved():
        return None
    left = unproven(kernels)
    if left.is_empty():
        why = "values read back later prove all kernels that are shown; one that is not shown failed"
        return Finding(conclusion=conclude.undecided(fault, why), cleared=all_but(ops, 0, _READ_BACK))
    place = f"{proof['event']} {proof['kernel'] or 'of the model'}"
    text = f"{proof['arg']} was read back here ({place}): all work before was sound"
    span = Span(
        begin_line=int(left["line"].min()) - 1,  # type: ignore[arg-type]
        end_line=fault.block_first,
        begin=Border(reason=text, line=int(str(proof["line"])), proof="value_printer"),
        end=Border(reason="the fault was met here", line=fault.line),
        proven=True,
    )
    inside = ops.filter(pl.col("id").is_in(left["id"].implode()))
    if left.height == 1:
        return _only_launch(kernels, fault, ops, span, sure=proof["id"] == left["id"][0])
    return _ranked(kernels, fault, inside, ops, span)


def _only_launch(
    kernels: ProcessKernels, fault: FaultRecord, ops: pl.DataFrame, span: Span, *, sure: bool
) -> Finding:
    """One launch is left. What is read back right before a launch leaves room for no other (``sure``)."""
    number = int(unproven(kernels)["id"][0])
    facts = facts_of_launch(kernels, number, ops)
    opened = open_span(ops, ops.filter(pl.col("id") == number), [facts], span)
    why = f"it is the only launch shown since the last value that was read back (line {span.begin.line})"
    lines = [line for line in (span.begin.line, fault.line) if line is not None]
    reason = Reason(evidence="read_back", text=why, weight=8.0 if sure else 4.0, lines=lines)
    suspect = named(facts, [reason, *large_integers(kernels.launch(number))])
    conclusion = conclude.proven(fault, suspect, why)
    if not sure:
        note = "kernels that the printer does not show can have run in between"
        conclusion = msgspec.structs.replace(conclusion, confidence="likely", notes=[note])
    return Finding(conclusion=conclusion, suspects=[suspect], window=opened.window, cleared=opened.cleared)


def _ranked(
    kernels: ProcessKernels, fault: FaultRecord, inside: pl.DataFrame, ops: pl.DataFrame, span: Span
) -> Finding | None:
    before = ops.filter(pl.col("id") < inside["id"].min())
    facts = [facts_of_launch(kernels, number, ops) for number in inside["id"].tail(_RANKED)]
    opened = open_span(ops, inside, facts, span)
    if opened.window is None:
        return None
    suspects = rank(facts, fault, before.height)
    conclusion = conclude.by_share(fault, suspects, opened.window, None)
    return Finding(conclusion=conclusion, suspects=suspects, window=opened.window, cleared=opened.cleared)


def of_blocking(kernels: ProcessKernels, fault: FaultRecord, ops: pl.DataFrame) -> Finding | None:
    """Level 3 with blocking launches: the last name without its second line (observed.md 32)."""
    if not is_blocking(kernels, fault):
        return None
    number = interrupted(kernels, fault)
    if number is None:
        return _without_a_name(kernels, fault, ops)
    facts = facts_of_launch(kernels, number, ops)
    seen = "" if kernels.known.modes.launch_blocking else " (the error text does not say that it can be late)"
    why = f"it is the last kernel named before the fault (line {facts.launch_line}); {BLOCKING}{seen}"
    reason = Reason(evidence="blocking", text=why, weight=8.0, lines=[facts.launch_line, fault.line])
    suspect = named(facts, [reason])
    return Finding(
        conclusion=conclude.proven(fault, suspect, why),
        suspects=[suspect],
        cleared=all_but(ops, 1, "with blocking launches each returned before the next"),
    )


def _without_a_name(kernels: ProcessKernels, fault: FaultRecord, ops: pl.DataFrame) -> Finding:
    """Blocking launches clear all that returned; the one that failed is not among the names."""
    if names_lost(kernels, fault):
        why = (
            "the lines of the value printer break off: standard output was written in blocks, and the names"
            " of later kernels were lost with the process (stdbuf -oL keeps them; compute-sanitizer names"
            " the kernel)"
        )
        return Finding(conclusion=conclude.undecided(fault, why))
    why = (
        "every kernel that the value printer named had returned, and with blocking launches it was sound"
        " then: one that is not named failed, or its name was lost in a buffer (stdbuf -oL keeps it)"
    )
    return Finding(conclusion=conclude.undecided(fault, why), cleared=all_but(ops, 0, _RETURNED))

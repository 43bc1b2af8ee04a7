"""Which launch a fault belongs to, by what was read back and named before it (observed.md 30-32).

A value that was read back proves all earlier work of its stream sound: the launch whose read-back failed is
the only one left. Names alone (level 3) prove nothing, unless launches were blocking.
"""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.knowledge import Finding, Knowledge
from analyzer.model import FaultRecord, TrustDecision
from analyzer.schema import Border, Reason
from analyzer.suspects.rank import named, rank
from analyzer.traits import is_sticky
from analyzer.values.bad_indices import large_integers
from analyzer.values.faults import NAME, last_read_back, unproven
from analyzer.values.launches import (
    ProcessKernels,
    facts_of_launch,
    kernels_of,
)
from analyzer.verdict import conclude
from analyzer.verdict.exact import all_but
from analyzer.window.borders import Span
from analyzer.window.opened import open_span

_BLOCKING = "launches were blocking, and no line after its launch was printed"
_RETURNED = "with blocking launches each had returned before the fault"
_BEFORE, _AFTER, _CLOSE = "[ before_launch: ", "[ after_launch: ", " ]"
_TOLD = len("[ b")  # letters that tell a name that breaks off from other brackets
_TERMINATE = "terminate called"  # what C++ says on standard error before it aborts
_BLOCK_BYTES = 4096  # of standard output that is no terminal (glibc, pipes and files)
_RANKED = 200  # launches whose tensors are read
_READ_BACK = "a value read back after it was sound"


def serialised(known: Knowledge, fault: FaultRecord, trust: TrustDecision) -> TrustDecision:
    """A fault under blocking launches is exact where the value printer named the kernel (observed.md 32).

    So is a value that it printed.
    """
    if fault.witness == NAME:
        return TrustDecision(trust="exact", reason="the value printer read the value back at this launch")
    source, process = fault.source, fault.process
    kernels = kernels_of(known, source, process)
    if trust.trust == "exact" or kernels is None or not is_sticky(fault):
        return trust
    if _interrupted(kernels, fault) is None:
        return trust
    return TrustDecision(trust="exact", reason=f"the last kernel named before it is the one: {_BLOCKING}")


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


def _is_blocking(kernels: ProcessKernels, fault: FaultRecord) -> bool:
    """Whether the first device fault met the names of blocking launches.

    Blocking is known from the log, or seen in the error text: under it PyTorch leaves out that errors can be
    reported late (observed.md 21).
    """
    if not (kernels.known.modes.launch_blocking or fault.async_hint is False) or kernels.interleaved():
        return False
    return kernels.limit == fault.line and kernels.launches.height > 0


def _interrupted(kernels: ProcessKernels, fault: FaultRecord) -> int | None:
    """The launch that a fault under blocking launches interrupted, or null."""
    if not _is_blocking(kernels, fault) or _names_lost(kernels, fault):
        return None
    last = kernels.launches.row(-1, named=True)
    ended = last["completion_line"] is not None and last["completion_line"] < fault.line
    return None if ended else int(last["id"])


def _names_lost(kernels: ProcessKernels, fault: FaultRecord) -> bool:
    """Whether names of later kernels were lost with the process.

    The printer does not flush, and an abort does not either: through a pipe or into a file, standard output
    ends where a block of it did, in the middle of a line as a rule, with the error text glued to it.
    """
    if _printed_bytes(kernels) % _BLOCK_BYTES == 0:
        return True
    first = max(kernels.launches.select("before_last", "after_last").row(-1), key=lambda line: line or 0)
    lines = kernels.known.readers[kernels.source].lines(int(first), fault.line)
    own = [part for line in lines if line.process == kernels.process for part in line.text.split("\n")]
    return any(_is_torn(text) for text in own)


def _printed_bytes(kernels: ProcessKernels) -> int:
    """Bytes of the names as the printer wrote them."""
    size = pl.col("kernel").str.len_bytes()
    after = pl.when(pl.col("completion_line").is_not_null()).then(size + len(_AFTER) + len(_CLOSE) + 1)
    return int(
        kernels.launches.select((size + len(_BEFORE) + len(_CLOSE) + 1 + after.fill_null(0)).sum()).item()
    )


def _is_torn(text: str) -> bool:
    """A name that breaks off, or other text behind one in the same line."""
    for head in (_BEFORE, _AFTER):
        if text.startswith(head):
            _, closed, rest = text.partition(_CLOSE)
            return not closed or bool(rest.strip())
    ended = text.find(_TERMINATE)
    return text.startswith((_BEFORE[:_TOLD], _AFTER[:_TOLD])) or (ended > 0 and bool(text[:ended].strip()))


def of_blocking(kernels: ProcessKernels, fault: FaultRecord, ops: pl.DataFrame) -> Finding | None:
    """Level 3 with blocking launches: the last name without its second line (observed.md 32)."""
    if not _is_blocking(kernels, fault):
        return None
    number = _interrupted(kernels, fault)
    if number is None:
        return _without_a_name(kernels, fault, ops)
    facts = facts_of_launch(kernels, number, ops)
    seen = "" if kernels.known.modes.launch_blocking else " (the error text does not say that it can be late)"
    why = f"it is the last kernel named before the fault (line {facts.launch_line}); {_BLOCKING}{seen}"
    reason = Reason(evidence="blocking", text=why, weight=8.0, lines=[facts.launch_line, fault.line])
    suspect = named(facts, [reason])
    return Finding(
        conclusion=conclude.proven(fault, suspect, why),
        suspects=[suspect],
        cleared=all_but(ops, 1, "with blocking launches each returned before the next"),
    )


def _without_a_name(kernels: ProcessKernels, fault: FaultRecord, ops: pl.DataFrame) -> Finding:
    """Blocking launches clear all that returned; the one that failed is not among the names."""
    if _names_lost(kernels, fault):
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

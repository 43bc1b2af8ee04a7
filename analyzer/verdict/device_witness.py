"""Faults that must be joined to launches: device-side witnesses, and late reports with an op log."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.incident.asserts import is_assert_text
from analyzer.knowledge import Finding, Knowledge, Row
from analyzer.model import FaultRecord, KernelState
from analyzer.schema import Conclusion, Reason, Suspect
from analyzer.suspects.index_values import bad_index_of
from analyzer.suspects.join import Join, join_assert, join_kernel
from analyzer.suspects.producers import is_by_hand, writers_of
from analyzer.suspects.rank import LIKELY_SHARE, named, rank
from analyzer.suspects.same_inputs import Key, key_of, keys_of
from analyzer.timeline.facts import gather_facts
from analyzer.verdict import conclude
from analyzer.verdict.exact import facts_of_fault
from analyzer.verdict.named_together import named_together, one_of_names
from analyzer.window.graphs import with_graphs
from analyzer.window.opened import OpenWindow, open_window

_ENDS_BEFORE = "the op log breaks off before the failure: which launch it was is not known"
_SOUND_READ = 400  # launches whose bodies are read


def device_witness(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame) -> Finding:
    """A core dump or a debugger names the faulting kernel: join it to the launches in flight."""
    assert fault.state is not None
    if together := named_together(known, fault):
        return one_of_names(known, fault, together, ops)
    kernel = fault.state.kernel
    if ops.is_empty():
        facts = facts_of_fault(msgspec.structs.replace(fault, kernel=kernel))
        frames = [
            frame for frame in (fault.state.frame, fault.python) if frame
        ]  # in the kernel, and its launch
        if frames:
            facts = msgspec.structs.replace(facts, source=tuple(frames))
        reason = Reason(
            evidence="device_witness", text=f"{fault.witness} saw it fault", weight=8.0, lines=[fault.line]
        )
        suspect = named(facts, [reason])
        why = f"{fault.witness} saw the fault in this kernel (line {fault.line})"
        return Finding(conclusion=conclude.proven(fault, suspect, why), suspects=[suspect])
    opened = open_window(known, fault, ops, None)
    in_flight = with_graphs(known, ops.filter(pl.col("run") == ops["run"][-1]), opened.facts)
    joined = join_kernel(_best_state(known, fault), in_flight, known.packages)
    if not joined.ops:
        return device_witness(known, fault, ops.clear())
    before = _ends_before(known, fault, ops)
    return _joined(fault, joined, opened, sound_keys(known, opened, ops), ends_before=before)


def assert_in_window(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame) -> Finding | None:
    """A device assert beside an op log: the ops in flight that can have launched its kernel.

    Null = it is no assert text, or a debugger named the kernel as well (``device_witness``).
    """
    if not is_assert_text(fault) or fault.state is not None or ops.is_empty():
        return None
    opened = open_window(known, fault, ops, None)
    file = fault.location.file if fault.location else None
    facts = with_graphs(known, ops.filter(pl.col("run") == ops["run"][-1]), opened.facts)
    joined = join_assert(fault.kernel, file, facts)
    if not joined.ops and fault.kernel is not None:
        joined = join_kernel(KernelState(kernel=fault.kernel), opened.facts, known.packages)
    if not joined.ops:
        return None
    return _joined(fault, joined, opened, sound_keys(known, opened, ops))


def sound_keys(known: Knowledge, opened: OpenWindow, ops: pl.DataFrame) -> frozenset[Key]:
    """What the launches that are proven sound read, as far as they are of ops of the window."""
    names = {op.ref.name for op in opened.facts if key_of(op) is not None}
    rows = opened.span.cleared(ops).filter(pl.col("name").cast(pl.String).is_in(list(names)))
    rows = rows.tail(_SOUND_READ)
    if rows.is_empty():
        return frozenset()
    return keys_of(gather_facts(rows, ops.clear(), known.readers[int(ops["source"][0])], known.types))


def _best_state(known: Knowledge, fault: FaultRecord) -> KernelState:
    """The fullest state of the faulting kernel: cuda-gdb knows the grid, the core-dump lines do not."""
    assert fault.state is not None
    same = [r.state for r in known.records if r.state and r.state.kernel == fault.state.kernel]
    return next((state for state in same if state.grid), fault.state)


def _joined(
    fault: FaultRecord,
    joined: Join,
    opened: OpenWindow,
    sound: frozenset[Key],
    *,
    ends_before: bool = False,
) -> Finding:
    """The launches that the faulting kernel can be, as sure as what tells them apart.

    Proven: the only one, one with a bad index, or those of one place. Else what tells them apart is evidence.
    """
    reason = Reason(evidence="device_witness", text=joined.how, weight=8.0, lines=[fault.line])
    why = f"{fault.witness} saw the fault (line {fault.line}); {joined.how}"
    messenger = _messenger(fault, joined, opened, why)
    if messenger is not None:
        return messenger
    suspects = [
        msgspec.structs.replace(
            one, reasons=[reason, *one.reasons], weight=round(one.weight + reason.weight, 3)
        )
        for one in rank(joined.ops, fault, launches_before=0, sound=sound)
    ]
    conclusion = _among(fault, suspects, joined, opened, why, ends_before=ends_before)
    return Finding(conclusion=conclusion, suspects=suspects, window=opened.window, cleared=opened.cleared)


def _ends_before(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame) -> bool:
    """Whether the op log is another input and breaks off in a line before it tells of the failure.

    The launch that failed can then be one that the log does not have any more.
    """
    own = int(ops["source"][0])
    reader = known.readers[own]
    told = any(record.source == own for record in known.records)
    return fault.source != own and not told and reader.is_cut(reader.total_lines)


def _among(
    fault: FaultRecord,
    suspects: list[Suspect],
    joined: Join,
    opened: OpenWindow,
    why: str,
    *,
    ends_before: bool,
) -> Conclusion:
    bad = next((bad for op in joined.ops if (bad := bad_index_of(op))), None)
    if bad is not None:
        return conclude.proven(fault, suspects[0], f"{bad.words}; {why}")
    if len(suspects) == 1 and not ends_before:
        return conclude.proven(fault, suspects[0], why)
    places = {(one.op.name, tuple(one.source[:1])) for one in suspects}
    if len(places) == 1:
        found = conclude.proven_name(fault, suspects[0], why)
    elif suspects[0].share > LIKELY_SHARE and opened.window is not None:
        found = conclude.by_share(fault, suspects, opened.window, None)
    else:
        found = conclude.one_of(fault, suspects, why)
    if ends_before:
        return msgspec.structs.replace(found, notes=[_ENDS_BEFORE])
    text = f"the kernel is proven; which of {len(suspects)} launches in the window it was is not known"
    return msgspec.structs.replace(found, notes=[text])


def _messenger(fault: FaultRecord, joined: Join, opened: OpenWindow, why: str) -> Finding | None:
    """The faulting kernel is known, and another one that somebody wrote made the integers that it reads.

    Which of the two is wrong is not proven: a core dump names the messenger too (observed.md 25). Both are
    ranked, the maker first.
    """
    if len({op.ref.name for op in joined.ops}) != 1:
        return None
    met = joined.ops[-1]
    ids = {writer.id for writer in writers_of(met)}
    makers = [op for op in opened.facts if op.ref.id in ids and op.run == met.run and is_by_hand(op)]
    makers = [op for op in makers if op.launch_line < met.launch_line]
    if not makers:
        return None
    suspects = rank([*makers, met], fault, launches_before=0)
    if suspects[0].op == met.ref:
        return None
    conclusion = conclude.messenger(fault, suspects, met.ref, why)
    return Finding(conclusion=conclusion, suspects=suspects, window=opened.window, cleared=opened.cleared)


def late_report(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame, reported: Row | None) -> Finding:
    """A late report with an op log: rank the window."""
    opened = open_window(known, fault, ops, reported)
    if opened.window is None:
        why = "no launch stands before the report"
        return Finding(conclusion=conclude.undecided(fault, why), cleared=opened.cleared)
    earlier = pl.col("launch_line") <= opened.span.begin_line
    before = ops.filter(earlier & (pl.col("run") == opened.facts[-1].run)).height
    suspects = rank(opened.facts, fault, before, sound_keys(known, opened, ops))
    nothing = _tells_nothing(suspects, opened)
    if nothing is not None:
        conclusion = conclude.undecided(fault, nothing)
        return Finding(conclusion=conclusion, window=opened.window, cleared=opened.cleared)
    notes = _doubts(known, ops, opened)
    conclusion = conclude.by_share(fault, suspects, opened.window, "ranked" if notes else None)
    conclusion = msgspec.structs.replace(conclusion, notes=notes)
    return Finding(conclusion=conclusion, suspects=suspects, window=opened.window, cleared=opened.cleared)


def _tells_nothing(suspects: Sequence[Suspect], opened: OpenWindow) -> str | None:
    """Why the window accuses nobody: all alike, or nothing but innocent-looking ops behind an open border."""
    if len(suspects) > 1 and suspects[0].weight == suspects[-1].weight:
        return f"nothing in it tells the {len(suspects)} ops apart that were in flight"
    if suspects[0].weight <= 0 and not opened.span.proven:
        return "nothing in it speaks against an op in flight, and earlier launches stay possible"
    return None


def _doubts(known: Knowledge, ops: pl.DataFrame, opened: OpenWindow) -> list[str]:
    """Why the first suspect is not called likely, whatever its share is."""
    doubts = []
    if known.timeline.untagged_writers:
        doubts.append(conclude.UNTAGGED_WRITERS)
    first = ops.filter(pl.col("run") == opened.facts[-1].run)["id"][0]
    if first > 0 and not opened.span.proven:
        doubts.append(f"the log begins at op id {first}: the launches before it can be guilty too")
    if opened.span.begin.proof == "value_line":
        doubts.append("the window begins at a line that looks like a value of the device, which is inferred")
    return doubts

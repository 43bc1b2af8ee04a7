"""From timeline and fault records to window, suspects and conclusion."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.diagnosis.advised import with_advised
from analyzer.diagnosis.cut_end import ends_in_name, is_cut_off
from analyzer.diagnosis.cut_names import ends_inside, without_cut_names
from analyzer.diagnosis.incidents import roles_of_incidents
from analyzer.diagnosis.kernel_notes import kernel_log_steps, own_verdicts, with_cleanup
from analyzer.diagnosis.knowledge import Diagnosis, Finding, Knowledge, Row, process_ops, reported_op
from analyzer.diagnosis.load import KILL, with_load
from analyzer.diagnosis.named import exact_report, names_a_launch, nan_check, op_that_raised
from analyzer.diagnosis.notes import with_notes
from analyzer.diagnosis.printed_values import printed_fault, with_printed_faults
from analyzer.diagnosis.read_back import serialised
from analyzer.diagnosis.several import with_doubt, with_other_asserts
from analyzer.diagnosis.stopped import demote_stopped, with_stopped
from analyzer.diagnosis.survived import demote_survived, with_survived
from analyzer.diagnosis.times_above import with_times_above
from analyzer.diagnosis.witnessed import device_witness, late_report
from analyzer.faults.advised import with_backed
from analyzer.faults.fold import fold_repeats
from analyzer.faults.roles import RoleDecision, is_sticky
from analyzer.faults.sticky import is_death
from analyzer.faults.trust import decide_trust
from analyzer.faults.units import name_writers
from analyzer.model import FaultRecord, TrustDecision
from analyzer.schema import Fault, NextStep, ReportedAt
from analyzer.suspects import conclude
from analyzer.suspects.next_steps import next_steps
from analyzer.suspects.next_steps_aoti import aoti_steps
from analyzer.suspects.program import Seen, seen_around


def diagnose(known: Knowledge) -> Diagnosis:
    """Decide roles and trust of all faults, then what can be said about the root one."""
    known = msgspec.structs.replace(known, records=name_writers(with_backed(fold_repeats(known.records))))
    known = msgspec.structs.replace(known, records=without_cut_names(known))
    known = with_printed_faults(known)
    known = msgspec.structs.replace(known, records=with_times_above(known))
    assigned, earlier = roles_of_incidents(known)
    roles = demote_stopped(known, demote_survived(known, assigned))
    trusts = [
        decide_trust(record, after_sticky=role.after_sticky, modes=known.modes)
        for record, role in zip(known.records, roles, strict=True)
    ]
    trusts = with_doubt(known.records, trusts)
    root = next((index for index, role in enumerate(roles) if role.role == "root"), None)
    if root is None:
        clean = conclude.no_fault(known.modes, known.timeline.ops.height)
        clean = with_advised(with_survived(clean, known.records, assigned, roles), known.records)
        clean = with_cleanup(with_stopped(clean, roles), known.records)
        finding, reported = Finding(conclusion=clean), None
    else:
        trusts[root], finding, reported = _of_root(known, known.records[root], trusts[root])
        finding = _with_notes_of(finding, earlier)
    faults = [
        _fault(known, record, role, trust, reported if index == root else None)
        for index, (record, role, trust) in enumerate(zip(known.records, roles, trusts, strict=True))
    ]
    return Diagnosis(
        faults=faults,
        conclusion=finding.conclusion,
        next_steps=_steps(known, known.records[root] if root is not None else None, finding),
        window=finding.window,
        cleared=finding.cleared,
        suspects=finding.suspects,
    )


def _with_notes_of(finding: Finding, earlier: Sequence[str]) -> Finding:
    """The finding with what is said of earlier crashes in the log."""
    if not earlier:
        return finding
    notes = [*finding.conclusion.notes, *earlier]
    conclusion = msgspec.structs.replace(finding.conclusion, notes=notes)
    return msgspec.structs.replace(finding, conclusion=conclusion)


def _of_root(
    known: Knowledge, fault: FaultRecord, trust: TrustDecision
) -> tuple[TrustDecision, Finding, Row | None]:
    """What can be said about the root fault: its trust, the finding, the op that its report names."""
    trust = serialised(known, fault, trust)
    ops = process_ops(known, fault)
    reported = reported_op(ops, fault)
    if (why := _cut_off(known, fault)) is not None:
        trust = TrustDecision(trust="late", reason="the input ends inside this text: the rest is not known")
        return trust, Finding(conclusion=conclude.undecided(fault, why)), reported
    finding = _infer(known, fault, trust, ops, reported)
    if (why := _cut_name(known, fault, finding)) is not None:
        nameless = msgspec.structs.replace(fault, kernel=None)
        return trust, Finding(conclusion=conclude.undecided(nameless, why)), reported
    conclusion = with_other_asserts(with_notes(finding.conclusion, known, fault), known, fault)
    conclusion = with_load(conclusion, known, fault)
    return trust, msgspec.structs.replace(finding, conclusion=conclusion), reported


def _cut_off(known: Knowledge, fault: FaultRecord) -> str | None:
    """Why a text that the end of its input cuts names nobody; null = it is whole."""
    if is_cut_off(known.readers[fault.source], fault.line):
        return f"the input ends in the middle of line {fault.line}, inside the text of the fault"
    if ends_inside(known, fault):
        last = known.readers[fault.source].total_lines
        return f"the input ends in the middle of line {last}, inside the report that names the kernel"
    return None


def _cut_name(known: Knowledge, fault: FaultRecord, finding: Finding) -> str | None:
    """Why the name of the first suspect is none; null = it is whole, or the op log has it."""
    reader = known.readers[fault.source]
    first = next(iter(finding.suspects), None)
    if first is None or first.op.id is not None or not ends_in_name(reader, first.op.name, fault.block_first):
        return None
    return f"the input ends in the middle of line {reader.total_lines}, inside the name of the op"


def _steps(known: Knowledge, fault: FaultRecord | None, finding: Finding) -> list[NextStep]:
    steps = next_steps(
        fault,
        finding.conclusion.confidence,
        known.modes,
        known.advice,
        has_ops=bool(known.timeline.ops.height),
        seen=seen_around(fault, known.records, known.readers[fault.source].raw) if fault else Seen(),
    )
    health = kernel_log_steps(known.records, fault)
    if fault is None:
        return steps + health
    if own_verdicts(known.records, fault):
        steps = health + steps  # a device that the driver wants reset or rebooted is looked at before a run
    else:
        steps += health
    return aoti_steps(fault, finding.suspects, known.kernels.level()) + steps


def _infer(
    known: Knowledge, fault: FaultRecord, trust: TrustDecision, ops: pl.DataFrame, reported: Row | None
) -> Finding:
    """One case for each way in which a fault can be told (design.md rules 2 and 7)."""
    if (printed := printed_fault(known, fault, ops)) is not None:
        return printed
    if fault.kind == "nan":
        return nan_check(known, fault, ops, reported)
    if fault.site == "device" and fault.state is not None:
        return device_witness(known, fault, ops)
    if trust.trust == "exact":
        if fault.site == "host" and (raised := op_that_raised(known, fault, ops)) is not None:
            return exact_report(known, fault, trust, ops, raised)
        if not names_a_launch(fault):
            return Finding(conclusion=conclude.proven(fault, None, trust.reason))
        return exact_report(known, fault, trust, ops, reported)
    if ops.is_empty():
        return Finding(conclusion=conclude.undecided(fault, _why_undecided(known, fault)))
    return late_report(known, fault, ops, reported)


def _why_undecided(known: Knowledge, fault: FaultRecord) -> str:
    if fault.site == "kernel_log":
        return "the kernel log names GPU and process, but no kernel"
    if fault.met:
        return f"its printer ({fault.witness}) only looks at the device, or waits for others"
    if is_death(fault) and fault.name == KILL:
        return "SIGKILL is sent from outside: by the kernel for memory, a supervisor, a person"
    if fault.relayed:
        return f"{fault.witness} only says that something failed, not what"
    if known.timeline.ops.height:
        return "several processes have op records and the fault carries no tag of one of them"
    return "the report came late and the log has no op records"


def _fault(
    known: Knowledge, record: FaultRecord, role: RoleDecision, trust: TrustDecision, reported: Row | None
) -> Fault:
    site = f"{record.location.file}:{record.location.line}" if record.location else None
    return Fault(
        line=record.line,
        last_line=record.last_line,
        input=record.source,
        process=record.process,
        text=record.text,
        witness=record.witness,
        kind=record.kind,
        role=role.role,
        trust=trust.trust,
        code=record.code,
        name=record.name,
        vendor=record.vendor,
        sticky=is_sticky(record),
        device=record.device,
        rank=record.rank,
        time_ns=record.time_ns if record.clock != "boot" else None,
        byte_offset=known.readers[record.source].offset(record.line),
        count=record.count,
        kernel=record.state.kernel if record.state else None,
        reported_at=ReportedAt(
            kernel=record.kernel,
            entry_point=record.entry_point,
            op_id=int(str(reported["id"])) if reported else None,
            op_line=int(str(reported["launch_line"])) if reported else None,
            site=site,
            python=record.python,
        ),
        role_reason=role.reason,
        trust_reason=trust.reason,
    )

"""From timeline and fault records to window, suspects and conclusion."""

from __future__ import annotations

import polars as pl

from analyzer.diagnosis.knowledge import Diagnosis, Finding, Knowledge, Row, process_ops, reported_op
from analyzer.diagnosis.named import exact_report, nan_check
from analyzer.diagnosis.witnessed import device_witness, late_report
from analyzer.faults.roles import RoleDecision, assign_roles, is_sticky
from analyzer.faults.trust import decide_trust
from analyzer.model import FaultRecord, TrustDecision
from analyzer.schema import Fault, ReportedAt
from analyzer.suspects import conclude
from analyzer.suspects.next_steps import next_steps


def diagnose(known: Knowledge) -> Diagnosis:
    """Decide roles and trust of all faults, then what can be said about the root one."""
    roles = assign_roles(known.records)
    trusts = [
        decide_trust(record, after_sticky=role.after_sticky, modes=known.modes)
        for record, role in zip(known.records, roles, strict=True)
    ]
    root = next((index for index, role in enumerate(roles) if role.role == "root"), None)
    if root is None:
        finding = Finding(conclusion=conclude.no_fault(known.modes, known.timeline.ops.height))
        reported = None
    else:
        ops = process_ops(known, known.records[root])
        reported = reported_op(ops, known.records[root])
        finding = _infer(known, known.records[root], trusts[root], ops, reported)
    faults = [
        _fault(known, record, role, trust, reported if index == root else None)
        for index, (record, role, trust) in enumerate(zip(known.records, roles, trusts, strict=True))
    ]
    steps = next_steps(
        known.records[root] if root is not None else None,
        finding.conclusion.confidence,
        known.modes,
        known.advice,
        has_ops=bool(known.timeline.ops.height),
    )
    return Diagnosis(
        faults=faults,
        conclusion=finding.conclusion,
        next_steps=steps,
        window=finding.window,
        cleared=finding.cleared,
        suspects=finding.suspects,
    )


def _infer(
    known: Knowledge, fault: FaultRecord, trust: TrustDecision, ops: pl.DataFrame, reported: Row | None
) -> Finding:
    """One case for each way in which a fault can be told (design.md rules 2 and 7)."""
    if fault.kind == "nan":
        return nan_check(known, fault, ops, reported)
    if fault.site == "device" and fault.state is not None:
        return device_witness(known, fault, ops)
    if trust.trust == "exact":
        if fault.kernel is None:
            return Finding(conclusion=conclude.proven(fault, None, trust.reason))
        return exact_report(known, fault, trust, ops, reported)
    if ops.is_empty():
        return Finding(conclusion=conclude.undecided(fault, _why_undecided(known)))
    return late_report(known, fault, ops, reported)


def _why_undecided(known: Knowledge) -> str:
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
        time_ns=record.time_ns,
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

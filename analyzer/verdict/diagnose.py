"""From timeline and fault records to window, suspects and conclusion."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.incident.cut_end import ends_in_name
from analyzer.incident.cut_names import cut_off
from analyzer.incident.incident import Incident, RoleDecision
from analyzer.knowledge import Diagnosis, Finding, Knowledge, Row, process_ops, reported_op
from analyzer.model import FaultRecord, TrustDecision
from analyzer.schema import Fault, ReportedAt
from analyzer.traits import is_death, is_sticky
from analyzer.verdict import conclude
from analyzer.verdict.cause import KILL, cause_class, cause_of_kind
from analyzer.verdict.confidence import with_caps
from analyzer.verdict.device_witness import assert_in_window, device_witness, late_report
from analyzer.verdict.driver_notes import with_cleanup
from analyzer.verdict.exact import exact_report, names_a_launch, nan_check, op_that_raised
from analyzer.verdict.marked import of_marks
from analyzer.verdict.named_together import with_other_asserts
from analyzer.verdict.no_root import with_stopped, with_survived
from analyzer.verdict.notes import with_notes
from analyzer.verdict.printed_values import printed_fault
from analyzer.verdict.server_load import with_load
from analyzer.verdict.tool_reports import with_advised
from analyzer.witness import is_probable


def diagnose(incident: Incident) -> Diagnosis:
    """What can be said about the root fault of an incident, and the faults as the result shows them."""
    known, root = incident.known, incident.root
    if root is None:
        clean = conclude.no_fault(known.modes, known.timeline.ops.height)
        clean = with_stopped(with_advised(with_survived(clean, incident), known.records), incident)
        finding, reported = Finding(conclusion=with_cleanup(clean, known.records)), None
    else:
        finding, reported = _of_root(known, known.records[root], incident.trusts[root])
        finding = _with_notes_of(finding, incident.notes)
    faults = [
        _fault(known, record, role, trust, reported if index == root else None)
        for index, (record, role, trust) in enumerate(
            zip(known.records, incident.roles, incident.trusts, strict=True)
        )
    ]
    return Diagnosis(
        faults=faults,
        conclusion=finding.conclusion,
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


def _of_root(known: Knowledge, fault: FaultRecord, trust: TrustDecision) -> tuple[Finding, Row | None]:
    """What can be said about the root fault: the finding, the op that its report names."""
    ops = process_ops(known, fault)
    reported = reported_op(ops, fault)
    if (why := cut_off(known, fault)) is not None:
        cut = msgspec.structs.replace(conclude.undecided(fault, why), cause_class=cause_of_kind(fault))
        return Finding(conclusion=cut), reported
    if is_probable(fault):
        finding = Finding(conclusion=conclude.probable(fault))
    else:
        finding = _infer(known, fault, trust, ops, reported)
    if (why := _cut_name(known, fault, finding)) is not None:
        nameless = msgspec.structs.replace(fault, kernel=None)
        cut = msgspec.structs.replace(conclude.undecided(nameless, why), cause_class=cause_of_kind(fault))
        return Finding(conclusion=cut), reported
    conclusion = with_other_asserts(with_notes(finding.conclusion, known, fault), known, fault)
    conclusion = with_caps(with_load(conclusion, known, fault), known.records, fault)
    conclusion = msgspec.structs.replace(conclusion, cause_class=cause_class(known.records, fault))
    return msgspec.structs.replace(finding, conclusion=conclusion), reported


def _cut_name(known: Knowledge, fault: FaultRecord, finding: Finding) -> str | None:
    """Why the name of the first suspect is none; null = it is whole, or the op log has it."""
    reader = known.readers[fault.source]
    first = next(iter(finding.suspects), None)
    if first is None or first.op.id is not None or not ends_in_name(reader, first.op.name, fault.block_first):
        return None
    return f"the input ends in the middle of line {reader.total_lines}, inside the name of the op"


def _infer(
    known: Knowledge, fault: FaultRecord, trust: TrustDecision, ops: pl.DataFrame, reported: Row | None
) -> Finding:
    """One case for each way in which a fault can be told (design.md rules 2 and 7)."""
    if (printed := printed_fault(known, fault, ops)) is not None:
        return printed
    if (marked := of_marks(known, fault, ops)) is not None:
        return marked
    if fault.kind == "nan":
        return nan_check(known, fault, ops, reported)
    if fault.site == "device" and fault.state is not None:
        return device_witness(known, fault, ops)
    if (found := assert_in_window(known, fault, ops)) is not None:
        return found
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
    if fault.site == "driver_log":
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

"""Roles inside one process: its root, and what follows from it (design.md rule 1, formats.md 5)."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.incident.asserts import explains, is_assert_text
from analyzer.incident.incident import Change, Incident, RoleDecision, SetRole, place_of
from analyzer.incident.processes import group_by_process
from analyzer.incident.root_of_process import root_of_process
from analyzer.model import FaultRecord
from analyzer.schema import Role
from analyzer.traits import is_death, is_sticky

_TERMINATE = "terminate called"
_UNTAGGED = "another assert without a tag: whether it is of the process of"


def within_process(incident: Incident) -> Iterator[Change]:
    """The first error of a process that explains the others is its root; the others follow from it."""
    compared = incident.compared
    records = [incident.records[index] for index in compared]
    for process in group_by_process(records):
        root = root_of_process(records, process)
        cause = records[root]
        for index in process:
            role = _ROOT if index == root else _beside_root(records[index], cause, later=index > root)
            yield SetRole(index=compared[index], role=role)


_ROOT = RoleDecision(role="root", reason="first error of its process that explains the others")


def _beside_root(record: FaultRecord, cause: FaultRecord, *, later: bool) -> RoleDecision:
    """The role of a fault beside the root of its process; ``later``: it stands behind it."""
    lost = is_sticky(cause) and later

    def decided(role: Role, reason: str, *, after_sticky: bool = False) -> RoleDecision:
        return RoleDecision(role=role, reason=reason, after_sticky=after_sticky, lines=(place_of(cause),))

    if _is_teardown(record, cause, later=later):
        return decided("teardown", "printed while objects were destroyed", after_sticky=True)
    if record.relayed and not cause.relayed:
        return decided("cascade", f"says that it failed; line {cause.line} says what", after_sticky=lost)
    if record.relayed and None not in {record.rank, cause.rank} and record.rank != cause.rank:
        return decided("bystander", f"another rank than that of line {cause.line}")
    if record.met and not cause.met:
        reason = f"its printer only looks at the device and met the fault of line {cause.line}"
        return decided("cascade", reason, after_sticky=True)
    if (apart := _not_of_assert(record, cause)) is not None:
        return decided("bystander", apart, after_sticky=later)
    if record.site == "device" and cause.site == "device":
        return decided("cascade", _other_witness(record, cause))
    if not later and not is_sticky(record):
        return decided("bystander", "an earlier error that left the process working")
    return decided("cascade", _why_cascade(record, cause, lost=is_sticky(cause)), after_sticky=lost)


def _is_teardown(record: FaultRecord, cause: FaultRecord, *, later: bool) -> bool:
    """Destructors, and ``terminate`` while an error unwinds the process (formats.md 5.5)."""
    if cause.teardown or cause.relayed:
        return False
    return record.teardown or (later and is_death(record) and record.text.startswith(_TERMINATE))


def _not_of_assert(record: FaultRecord, cause: FaultRecord) -> str | None:
    """Why an assert and another fault are not known to be of one crash; null = nothing speaks against it."""
    if not is_sticky(record):
        return None
    if is_assert_text(record) and is_assert_text(cause):
        return None if record.process else f"{_UNTAGGED} line {cause.line} is not told"
    if is_assert_text(record) and not explains(record, cause):
        return f"an assert is reported as 710: line {cause.line} tells of another fault"
    if is_assert_text(cause) and not explains(cause, record):
        return f"the assert at line {cause.line} is reported as 710: this is another fault"
    return None


def _other_witness(record: FaultRecord, cause: FaultRecord) -> str:
    if is_assert_text(record) and is_assert_text(cause):
        return f"a further assert: that of line {cause.line} was printed first"
    if record.line == cause.line and record.source == cause.source:
        return "the same report names it too: which of them faulted is not told"
    kernels = [one.state.kernel for one in (record, cause) if one.state is not None]
    same = len(kernels) == 2 and kernels[0] == kernels[1]
    apart = len(kernels) == 2 and not same and record.witness == cause.witness
    if same or (record.kind == cause.kind and not apart):
        return "another witness of the same device fault"
    return "a further device exception of the same crash"


def _why_cascade(record: FaultRecord, cause: FaultRecord, *, lost: bool) -> str:
    if is_death(record):
        return f"the process died of the error at line {cause.line}"
    if lost:
        return f"after the sticky error at line {cause.line} every call of the process fails"
    return f"follows the first error at line {cause.line}"

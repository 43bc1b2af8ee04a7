"""Which fault is the root, and what the others are (design.md rule 1, formats.md 5)."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.incident.asserts import (
    explains,
    is_assert_text,
    is_report_of_assert,
    untagged_sources,
    without_unexplained,
)
from analyzer.incident.driver_log import (
    first_of_kernel_log,
    hardware_before,
    is_kernel_log,
    roles_of_kernel_log,
)
from analyzer.incident.first import first_unit, seconds_between, who
from analyzer.incident.processes import build_units
from analyzer.incident.tool_reports import REASON
from analyzer.model import FaultRecord
from analyzer.schema import Role, Value
from analyzer.tables.kinds import CHECKS
from analyzer.traits import is_death, is_sticky, is_victim

_UNEXPLAINED = "python_traceback"  # an exception that no other witness knows explains nothing but itself
_TERMINATE = "terminate called"
_UNTAGGED = "another assert without a tag: whether it is of the process of"
RECOVERED_S = 120.0  # who lives on so long after an error did not die of it (teardown takes seconds)

__all__ = ["RoleDecision", "assign_roles", "is_sticky"]


class RoleDecision(Value):
    """The role of one fault and why. ``after_sticky``: an earlier sticky fault of its process exists."""

    role: Role
    reason: str
    after_sticky: bool = False


def assign_roles(records: Sequence[FaultRecord]) -> list[RoleDecision]:
    """Give each fault its role.

    Args:
        records: Faults in the order of inputs and lines.

    Returns:
        One decision a record, in the same order. Exactly one record is root; none if there are no records,
        or only messages of the kernel driver that say that nothing failed.
    """
    advised = RoleDecision(role="advice", reason=REASON)
    decisions = {index: advised for index, record in enumerate(records) if record.advice}
    roots = []
    for indices in build_units(records):
        root = root_of_unit(records, indices)
        roots.append(root)
        decisions.update((index, _within_unit(records, index, root)) for index in indices)
    first = first_unit(records, roots, _tiers(records, roots))
    for index in roots:
        if index != first:
            decisions[index] = _other_root(records[index], records[first])
    logged = [index for index, record in enumerate(records) if is_kernel_log(record)]
    cause = first if roots else first_of_kernel_log(records, logged)
    if roots and (failed := hardware_before(records, logged, records[first])) is not None:
        cause, decisions[first] = failed, _of_hardware(records[failed])
    for index, (role, reason) in roles_of_kernel_log(records, logged, cause, explains=bool(roots)).items():
        decisions[index] = RoleDecision(role=role, reason=reason)
    return [decisions[index] for index in range(len(records))]


def root_of_unit(records: Sequence[FaultRecord], indices: Sequence[int]) -> int:
    """The fault of one process that explains its others (formats.md 5.1-5.3).

    A check that fired before the first sticky fault; else the most telling sticky fault (device before
    report); else the first error that somebody understands; else an exception or a death; else a victim's
    complaint. What only hands a failure on, and what destructors print, count where nothing else is known.
    """
    usable = _prefer(records, indices)
    sticky = without_unexplained(records, [index for index in usable if is_sticky(records[index])])
    sticky = [index for index in sticky if not records[index].met] or sticky
    checks = [index for index in usable if records[index].kind in CHECKS]
    if checks and (not sticky or checks[0] < sticky[0]):
        return checks[0]
    if sticky:
        return min(sticky, key=lambda index: (_voice(records[index]), index))
    tiers = [tier_of(records[index]) for index in usable]
    first = usable[tiers.index(min(tiers))]
    deaths = [index for index in usable if is_death(records[index]) and index >= first]
    if deaths and (first in deaths or _recovered(records[first], records[deaths[0]])):
        return _first_exception(records, usable, deaths[0])
    return first


def tier_of(record: FaultRecord) -> int:
    """How much a fault explains beside those of other processes; less is more."""
    if record.teardown:
        return 4
    if record.relayed:
        return 3
    if is_victim(record):
        return 2
    return int(record.witness == _UNEXPLAINED)


def _tiers(records: Sequence[FaultRecord], roots: Sequence[int]) -> list[int]:
    """How much each root explains; a report of an assert explains less than an assert that nobody owns."""
    unowned = untagged_sources(records, roots)
    watched = any(records[index].kind == "hang_timeout" for index in roots)
    tiers = []
    for index in roots:
        record = records[index]
        if _is_seen_death(record, watched=watched):
            tiers.append(1)
            continue
        less = record.source in unowned and is_report_of_assert(record)
        tiers.append(max(1, tier_of(record)) if less else tier_of(record))
    return tiers


def _is_seen_death(record: FaultRecord, *, watched: bool) -> bool:
    """Whether a launcher saw this rank die first, by a signal: its peers lost it (formats.md 5.4).

    Where a collective timed out, SIGABRT is how the watchdog of a waiting rank ends its process.
    """
    return record.first_observed and is_death(record) and not (watched and record.name == "SIGABRT")


def _prefer(records: Sequence[FaultRecord], indices: Sequence[int]) -> Sequence[int]:
    told = [index for index in indices if not records[index].teardown]
    if told and all(is_death(records[index]) or _is_refused(records[index]) for index in told):
        # Nobody says what it died of but the destructors and pollers that met the fault before; a call that
        # refuses its arguments afterwards does so in a lost context.
        met = [index for index in indices if index < told[0] and records[index].teardown]
        told = sorted([*told, *(index for index in met if is_sticky(records[index]))])
    own = [index for index in told if not records[index].relayed]
    seen_first = [index for index in told if records[index].first_observed]
    return own or seen_first or told or indices


def _is_refused(record: FaultRecord) -> bool:
    return record.code is not None and not is_sticky(record) and record.kind != "out_of_memory"


def _voice(record: FaultRecord) -> int:
    """Core dump, sanitizer or ROCm's kernel name before the assert text before a report of the host."""
    if record.site != "device":
        return 2
    return int(record.kind == "device_assert" and record.state is None)


def _recovered(error: FaultRecord, death: FaultRecord) -> bool:
    """Whether the process lived on after an error for so long that it did not die of it."""
    passed = seconds_between(error, death)
    return passed is not None and passed > RECOVERED_S


def _first_exception(records: Sequence[FaultRecord], usable: Sequence[int], death: int) -> int:
    """An exception shortly before a death explains it: who raised tears down, and can abort there."""
    raised = [index for index in usable if records[index].witness == _UNEXPLAINED and index < death]
    near = [index for index in raised if not _recovered(records[index], records[death])]
    return near[0] if near else death


def _within_unit(records: Sequence[FaultRecord], index: int, root: int) -> RoleDecision:
    record, cause = records[index], records[root]
    if index == root:
        return RoleDecision(role="root", reason="first error of its process that explains the others")
    if _is_teardown(record, cause, later=index > root):
        return RoleDecision(role="teardown", reason="printed while objects were destroyed", after_sticky=True)
    lost = is_sticky(cause)
    if record.relayed and not cause.relayed:
        reason = f"says that it failed; line {cause.line} says what"
        return RoleDecision(role="cascade", reason=reason, after_sticky=lost and index > root)
    if record.relayed and None not in {record.rank, cause.rank} and record.rank != cause.rank:
        return RoleDecision(role="bystander", reason=f"another rank than that of line {cause.line}")
    if record.met and not cause.met:
        reason = f"its printer only looks at the device and met the fault of line {cause.line}"
        return RoleDecision(role="cascade", reason=reason, after_sticky=True)
    if (apart := _not_of_assert(record, cause)) is not None:
        return RoleDecision(role="bystander", reason=apart, after_sticky=index > root)
    if record.site == "device" and cause.site == "device":
        return RoleDecision(role="cascade", reason=_other_witness(record, cause))
    if index < root and not is_sticky(record):
        return RoleDecision(role="bystander", reason="an earlier error that left the process working")
    return RoleDecision(
        role="cascade", reason=_why_cascade(record, cause, lost=lost), after_sticky=lost and index > root
    )


def _is_teardown(record: FaultRecord, cause: FaultRecord, *, later: bool) -> bool:
    """Destructors, and ``terminate`` while an error unwinds the process (formats.md 5.5)."""
    if cause.teardown:
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


def _other_root(record: FaultRecord, first: FaultRecord) -> RoleDecision:
    """The first fault of another process: it can have failed by itself, but somebody failed before."""
    if record.relayed:
        return RoleDecision(role="bystander", reason=f"hands on the failure of {who(first)}")
    if is_victim(record):
        return RoleDecision(role="bystander", reason=f"victim of the failure of {who(first)}")
    if record.teardown:
        return RoleDecision(role="teardown", reason="printed while objects were destroyed")
    passed = seconds_between(first, record)
    if is_assert_text(first) and not first.process and is_report_of_assert(record):
        reason = f"it met an assert: whether that of line {first.line}, which has no tag, is not told"
    elif passed is not None and passed > 0:
        reason = f"{who(first)} failed {passed:.3f} s earlier (line {first.line})"
    elif record.source != first.source and passed is None:
        reason = f"{who(first)} is taken as the first (line {first.line}): the inputs have no common clock"
    else:
        reason = f"{who(first)} failed first (line {first.line})"
    return RoleDecision(role="bystander", reason=reason)


def _of_hardware(cause: FaultRecord) -> RoleDecision:
    """The error of a program whose GPU failed."""
    reason = f"the hardware fault at line {cause.line} ({cause.name}) made the calls of the program fail"
    return RoleDecision(role="cascade", reason=reason, after_sticky=True)

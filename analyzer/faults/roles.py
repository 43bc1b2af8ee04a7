"""Which fault is the root, and what the others are (design.md rule 1, formats.md 5)."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.faults.codes import by_code
from analyzer.model import FaultRecord
from analyzer.schema import Role, Value

_STICKY_KINDS = frozenset(
    {
        "illegal_address",
        "misaligned_address",
        "invalid_address_space",
        "launch_failure",
        "illegal_instruction",
        "device_assert",
        "ecc_error",
        "device_lost",
    }
)
_BEFORE_THE_FAULT = frozenset({"nan", "input_check"})  # a check that fired first explains what follows
_PEER_KINDS = frozenset({"peer_lost", "hang_timeout"})


class RoleDecision(Value):
    """The role of one fault and why. ``after_sticky``: an earlier sticky fault of its process exists."""

    role: Role
    reason: str
    after_sticky: bool = False


def is_sticky(record: FaultRecord) -> bool:
    """Whether the context is lost with this fault: all later calls of the process fail too."""
    if record.code is not None and (known := by_code(record.code)):
        return known.sticky
    return record.kind in _STICKY_KINDS


def assign_roles(records: Sequence[FaultRecord]) -> list[RoleDecision]:
    """Give each fault its role.

    Args:
        records: Faults in the order of inputs and lines.

    Returns:
        One decision a record, in the same order. At most one record is root unless several processes
        failed independently without a common clock.
    """
    decisions: list[RoleDecision | None] = [None] * len(records)
    roots: list[int] = []
    for indices in _by_process(records):
        root = _root_of_process(records, indices)
        roots.append(root)
        for index in indices:
            decisions[index] = _within_process(records, index, root)
    first = _first_root(records, roots)
    for index in roots:
        if index != first:
            decisions[index] = _other_root(records[index], records[first])
    return [one for one in decisions if one is not None]


def _by_process(records: Sequence[FaultRecord]) -> list[list[int]]:
    """Indices of each process. Untagged inputs that hold only device witnesses belong to the first one.

    A cuda-gdb text or a core dump given beside the log has no process tag; it describes the process that
    died, so it joins the process of the first other fault.
    """
    groups: dict[tuple[int, str], list[int]] = {}
    loose: list[int] = []
    for index, record in enumerate(records):
        if record.site == "device" and record.process == "":
            loose.append(index)
        else:
            groups.setdefault((record.source, record.process), []).append(index)
    if not groups:
        return [loose] if loose else []
    result = list(groups.values())
    result[0] = sorted([*result[0], *loose])
    return result


def _root_of_process(records: Sequence[FaultRecord], indices: Sequence[int]) -> int:
    """The first sticky fault counts; a device witness beats it; a check that fired before beats both."""
    sticky = [index for index in indices if is_sticky(records[index])]
    witnessed = [index for index in sticky if records[index].site == "device"]
    first_sticky = witnessed[0] if witnessed else sticky[0] if sticky else None
    checks = [index for index in indices if records[index].kind in _BEFORE_THE_FAULT]
    if checks and (first_sticky is None or checks[0] < min(sticky)):
        return checks[0]
    return first_sticky if first_sticky is not None else indices[0]


def _within_process(records: Sequence[FaultRecord], index: int, root: int) -> RoleDecision:
    record, cause = records[index], records[root]
    if index == root:
        return RoleDecision(role="root", reason="first error of its process that explains the others")
    if record.site == "device" and cause.site == "device":
        same = record.state and cause.state and record.state.kernel == cause.state.kernel
        text = (
            "another witness of the same device fault"
            if same
            else "a further device exception of the same crash"
        )
        return RoleDecision(role="cascade", reason=text)
    if index < root and not is_sticky(record):
        return RoleDecision(role="bystander", reason="an earlier error that left the process working")
    sticky_before = is_sticky(cause)
    reason = (
        f"after the sticky error at line {cause.line} every call of the process fails"
        if sticky_before
        else f"follows the first error at line {cause.line}"
    )
    return RoleDecision(role="cascade", reason=reason, after_sticky=sticky_before and index > root)


def _first_root(records: Sequence[FaultRecord], roots: Sequence[int]) -> int:
    """Earliest by clock where all have one, else by order of inputs; never a peer's victim if avoidable."""
    own = [index for index in roots if records[index].kind not in _PEER_KINDS] or list(roots)
    if own and all(records[index].time_ns is not None for index in own):
        return min(own, key=lambda index: (records[index].time_ns or 0, index))
    return own[0] if own else -1


def _other_root(record: FaultRecord, first: FaultRecord) -> RoleDecision:
    who = first.process or "another process"
    if record.kind in _PEER_KINDS:
        return RoleDecision(role="bystander", reason=f"victim of the failure of {who}")
    return RoleDecision(role="bystander", reason=f"{who} failed first (line {first.line})")

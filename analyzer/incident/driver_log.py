"""Roles of what the driver log has (formats.md 3.4, 3.20, 5): it names GPU and process, never a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.incident.driver_links import Link, Links, are_apart
from analyzer.incident.driver_messages import (
    CONTAINED,
    PEER_ACCESS,
    SAME_LINES,
    companions_of,
    is_failing_hardware,
    is_no_fault,
    is_of_driver,
    is_of_driver_log,
    reading_of,
)
from analyzer.incident.host_kills import is_host_kill, program_of, victim_of
from analyzer.incident.incident import Change, Incident, RoleDecision, SetRole, place_of
from analyzer.model import FaultRecord
from analyzer.schema import Role
from analyzer.tables.kinds import ACCESS, HARDWARE, OF_CODE
from analyzer.traits import is_sticky

VERDICT = "Xid 154"  # what the driver asks for, after faults of software too
_REMOVAL = "Xid 45"
_NO_DEVICE = 100
_AT_ONCE_NS = 60 * 10**9
_GPU_FAILED = "the GPU failed: what programs report is its consequence"
_FAMILY = ACCESS | OF_CODE  # faces of one bug


def failed_hardware(incident: Incident) -> Iterator[Change]:
    """Hardware that failed is the root: the error of the program is its consequence.

    It has to be linked with the error (``Links.explains``): hosts have many GPUs, and an accusation of one
    that the program never used sends people to the wrong card.
    """
    first = incident.root
    records = [incident.records[index] for index in incident.compared]
    root = incident.fault
    if first is None or root is None or is_of_driver_log(root) or not is_explainable(root):
        return
    links, companions = Links(records, root), companions_of(records)
    cause = next(
        (one for one in _messages(incident) if is_cause(incident.records[one], companions, links)), None
    )
    if cause is None:
        return
    record = incident.records[cause]
    yield SetRole(index=cause, role=RoleDecision(role="root", reason=_GPU_FAILED, lines=(place_of(root),)))
    reason = f"the hardware fault at line {record.line} ({record.name}) made the calls of the program fail"
    role = RoleDecision(role="cascade", reason=reason, after_sticky=True, lines=(place_of(record),))
    yield SetRole(index=first, role=role)


def driver_log_alone(incident: Incident) -> Iterator[Change]:
    """Where no program tells of a fault, the driver log has the root.

    A kill of the program goes first. Hardware that failed goes before software, that before corrected errors;
    what only follows something else comes last: it shows that something failed, not what.
    """
    if incident.root is None and (first := _first_of_driver_log(incident)) is not None:
        reason = "first fault in the kernel log, and no program tells of one"
        yield SetRole(index=first, role=RoleDecision(role="root", reason=reason))


def driver_messages(incident: Incident) -> Iterator[Change]:
    """A message of the driver belongs to the root fault, or is of something else."""
    messages = [index for index in _messages(incident) if index != incident.root]
    root = incident.fault
    if root is None:
        for index in messages:
            role, reason = _without_root(incident.records[index])
            yield SetRole(index=index, role=RoleDecision(role=role, reason=reason))
        return
    compared = [incident.records[index] for index in incident.compared]
    links, companions = Links(compared, root), companions_of(compared)
    for index in messages:
        record = incident.records[index]
        role, reason = _role_beside_root(record, root, links)
        joined = record.name == CONTAINED if is_of_driver(root) else role == "cascade"
        if joined and _is_harmless(record, companions):
            role, reason = "cascade", _why_harmless(record)
        decision = RoleDecision(role=role, reason=reason, lines=(place_of(root),))
        yield SetRole(index=index, role=decision)


def _messages(incident: Incident) -> list[int]:
    """Indices of the driver's messages, in order."""
    return [index for index in incident.compared if is_of_driver(incident.records[index])]


def _first_of_driver_log(incident: Incident) -> int | None:
    records = incident.records
    compared = [records[index] for index in incident.compared]
    program = program_of(compared)
    for index in incident.compared:
        victim = victim_of(records[index]) if is_host_kill(records[index]) else None
        if victim is not None and program.has(victim):
            return index
    logged = _messages(incident)
    companions = companions_of(compared)
    failing = [index for index in logged if is_failing_hardware(records[index], companions)]
    software = [index for index in logged if reading_of(records[index]) == "software"]
    other = [index for index in logged if not is_no_fault(records[index])]
    corrected = [index for index in other if reading_of(records[index]) == "hardware"]
    return next((found[0] for found in (failing, software, corrected, other) if found), None)


def _is_harmless(record: FaultRecord, companions: Sequence[FaultRecord]) -> bool:
    return reading_of(record) == "hardware" and not is_failing_hardware(record, companions)


def _why_harmless(record: FaultRecord) -> str:
    if record.name == CONTAINED:
        return f"keeps a bad access over NVLink ({PEER_ACCESS}) to one program: no memory error is told"
    return "errors that were corrected, or a repair: no call fails of it"


def _without_root(record: FaultRecord) -> tuple[Role, str]:
    if record.name == _REMOVAL:
        return "teardown", "the driver removed the channels of a process that ended"
    return "bystander", "it says by itself that nothing failed"


def _role_beside_root(record: FaultRecord, root: FaultRecord, links: Links) -> tuple[Role, str]:
    """The role of a driver message beside the root fault, and why: it supports it or is of something else."""
    if is_of_driver(root):
        return _beside_logged(record, root)
    link = links.of(record)
    reading = reading_of(record)
    if link.linked is False:
        return "bystander", link.why
    if reading == "hardware":
        return _role_of_hardware(record, root, links, link)
    if reading == "secondary" and (link.linked or link.near):
        told = "at the same time" if link.near else link.why
        if record.name == VERDICT:
            return "cascade", f"the driver's verdict on the GPU after the fault ({told})"
        return "cascade", f"the driver cleans up after the fault ({told})"
    if reading != "software":
        return "bystander", link.why
    if root.kind not in _FAMILY and root.kind != record.kind:
        return "bystander", "the kernel log has a fault of another kind"
    if link.linked is None and not link.near and links.has_pids() and "pid=" in record.process:
        return "bystander", link.why
    told = link.why if link.linked else "at the same time" if link.near else "their pids cannot be compared"
    return "cascade", f"the kernel log's side of the fault at line {root.line} ({told})"


def _role_of_hardware(record: FaultRecord, root: FaultRecord, links: Links, link: Link) -> tuple[Role, str]:
    """A time alone joins only what does not accuse a GPU of an error that is no answer of hardware."""
    if link.linked and (not link.by_time or links.explains(record)):
        return "cascade", f"the kernel log says hardware for the fault at line {root.line} ({link.why})"
    if link.by_time:
        return "bystander", f"{link.why}, which alone does not link it with this error"
    return "bystander", link.why


def is_explainable(root: FaultRecord) -> bool:
    """Whether hardware can be behind an error of a program.

    A failing GPU shows itself to the program as a late error of some kind (719, 999, 214, 700), or in that
    nothing answers any more. What the device said of the program's own code stands: it names a kernel, or a
    condition in it.
    """
    lost = is_sticky(root) or root.code == _NO_DEVICE or root.kind in HARDWARE or root.kind == "hang_timeout"
    return lost and root.site != "device"


def is_cause(record: FaultRecord, companions: Sequence[FaultRecord], links: Links) -> bool:
    """Whether a message of the driver makes hardware the cause of the error."""
    if not is_failing_hardware(record, companions) or links.is_long_after(record):
        return False
    return links.explains(record)


def _beside_logged(record: FaultRecord, root: FaultRecord) -> tuple[Role, str]:
    """Two messages of the driver: one event if they name one process or GPU, at one time."""
    other = f"another process or GPU; the first fault of the kernel log is at line {root.line}"
    if are_apart(record, root):
        return "bystander", f"another time; the first fault of the kernel log is at line {root.line}"
    of_pids = "pid=" in record.process and "pid=" in root.process
    if record.process == root.process:
        return "cascade", f"the same {'process' if of_pids else 'GPU'} as line {root.line}"
    if reading_of(record) == "software" or (of_pids and reading_of(root) != "hardware"):
        return "bystander", other
    if record.device is not None and record.device == root.device:
        return "cascade", f"the same GPU as line {root.line}"
    if reading_of(root) == "hardware" and _at_once(record, root):
        return "cascade", f"follows the hardware fault at line {root.line}"
    return "bystander", other


def _at_once(record: FaultRecord, root: FaultRecord) -> bool:
    if record.source != root.source or record.time_ns is None or root.time_ns is None:
        return record.source == root.source and 0 <= record.line - root.line <= SAME_LINES
    return 0 <= record.time_ns - root.time_ns <= _AT_ONCE_NS


def joined_hardware(records: Sequence[FaultRecord], root: FaultRecord) -> list[FaultRecord]:
    """Driver messages that make hardware the cause of the root fault."""
    logged = [one for one in records if is_of_driver(one)]
    companions = companions_of(records)
    if not is_of_driver(root):
        links = Links(records, root)
        return [one for one in logged if is_explainable(root) and is_cause(one, companions, links)]
    if not is_failing_hardware(root, companions):
        return [root] if reading_of(root) == "hardware" else []
    joined = [one for one in logged if reading_of(one) == "hardware" and one.name != _REMOVAL]
    return [one for one in joined if one is root or _beside_logged(one, root)[0] == "cascade"] or [root]


def is_joined_by_time(records: Sequence[FaultRecord], root: FaultRecord) -> bool:
    """Whether nothing but the time joins the hardware root with the errors of programs that it explains."""
    if not is_of_driver(root):
        return False
    told = [one for one in records if not is_of_driver_log(one) and is_explainable(one)]
    links = [links for one in told if (links := Links(records, one)).explains(root)]
    return bool(links) and all(one.of(root).by_time for one in links)

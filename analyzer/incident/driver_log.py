"""Roles of what the kernel logged (formats.md 3.4, 3.20, 5): it names GPU and process, never a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.incident.driver_links import Link, Links, are_apart
from analyzer.incident.host_kills import (
    explains_end,
    first_of_kills,
    is_host_kill,
    program_of,
    role_of_kill,
    why_killed,
)
from analyzer.model import FaultRecord
from analyzer.schema import Role
from analyzer.tables.kinds import ACCESS, HARDWARE, OF_CODE
from analyzer.tables.xids import Xid, XidReading, by_name, previous_xid
from analyzer.traits import is_sticky

VERDICT = "Xid 154"  # what the driver asks for, after faults of software too
_REMOVAL = "Xid 45"
_NO_DEVICE = 100
_AT_ONCE_NS = 60 * 10**9
_SAME_SECOND_NS = 10**9
_SAME_LINES = 50  # where there is no clock
_CONTAINED, _PEER_ACCESS = "Xid 94", "Xid 137"
_MEMORY = frozenset(f"Xid {number}" for number in (48, 63, 64, 95, 140, 171, 172))
_FAMILY = ACCESS | OF_CODE  # faces of one bug


def is_kernel_log(record: FaultRecord) -> bool:
    """Whether the kernel said it, about a GPU or a process: it belongs to no process of the log by itself."""
    return is_of_driver(record) or is_host_kill(record)


def is_of_driver(record: FaultRecord) -> bool:
    """Whether the driver of a GPU said it."""
    return record.site == "kernel_log"


def reading_of(record: FaultRecord) -> XidReading:
    """Hardware, software or secondary. What is not in the table is read by its kind.

    A clean-up that names the Xid that caused it is read as that one: the driver says that it happened.
    """
    row = _row(record)
    if row is not None and record.kind != "unknown":
        return row.reading
    if row is not None or record.kind == "unknown":
        return "secondary"
    return "hardware" if record.kind in HARDWARE else "software"


def _row(record: FaultRecord) -> Xid | None:
    return previous_xid(record.text) or by_name(record.name)


def is_no_fault(record: FaultRecord) -> bool:
    """A message that says by itself that nothing failed: a clean-up, a verdict, an event that is not fatal.

    Xid 45 without a cause is also printed for Ctrl-C and a kill; Xid 154 sums up others. Xid 43 is none of
    them: its channel was reset because the application made a fault.
    """
    row = _row(record)
    return row is not None and (not row.alone or (row.reading == "hardware" and record.kind == "unknown"))


def companions_of(records: Sequence[FaultRecord]) -> list[FaultRecord]:
    """Driver messages that say how an Xid 94 has to be read; none where no access over NVLink failed."""
    told = [one for one in records if is_of_driver(one) and one.name in {_PEER_ACCESS, *_MEMORY}]
    return told if any(one.name == _PEER_ACCESS for one in told) else []


def is_failing_hardware(record: FaultRecord, companions: Sequence[FaultRecord]) -> bool:
    """Whether a message says that hardware failed so that calls of programs can fail.

    Corrected memory errors and repairs (Xid 63, 92, 121) harm no call. An Xid 94 together with an Xid 137 is
    the containment of a bad access over NVLink, and memory is sound unless it says so too: observed on H200
    with all ECC counters at zero.

    Args:
        record: A message of the driver.
        companions: See ``companions_of``.
    """
    row = _row(record)
    if reading_of(record) != "hardware" or (row is not None and not row.fails):
        return False
    if record.name != _CONTAINED:
        return True
    around = {one.name for one in companions if _is_around(one, record)}
    return _PEER_ACCESS not in around or bool(around & _MEMORY)


def _is_around(one: FaultRecord, record: FaultRecord) -> bool:
    if one.source != record.source:
        return False
    if one.time_ns is None or record.time_ns is None:
        return abs(one.line - record.line) <= _SAME_LINES
    return abs(one.time_ns - record.time_ns) <= _SAME_SECOND_NS


def first_of_kernel_log(records: Sequence[FaultRecord], logged: Sequence[int]) -> int | None:
    """The root among messages of the kernel alone; null = none of them is a fault.

    A kill of the program goes first. Hardware that failed goes before software, that before corrected errors;
    what only follows something else comes last: it shows that something failed, not what.
    """
    if (killed := first_of_kills(records, [i for i in logged if is_host_kill(records[i])])) is not None:
        return killed
    logged = [index for index in logged if is_of_driver(records[index])]
    companions = companions_of(records)
    failing = [index for index in logged if is_failing_hardware(records[index], companions)]
    software = [index for index in logged if reading_of(records[index]) == "software"]
    other = [index for index in logged if not is_no_fault(records[index])]
    corrected = [index for index in other if reading_of(records[index]) == "hardware"]
    return next((found[0] for found in (failing, software, corrected, other) if found), None)


def roles_of_kernel_log(
    records: Sequence[FaultRecord], logged: Sequence[int], root: int | None, *, explains: bool
) -> dict[int, tuple[Role, str]]:
    """The role of each message of the kernel, and why; also of what a kill explains.

    Args:
        records: All faults.
        logged: Indices of the kernel's messages.
        root: The root fault; null = there is none.
        explains: Whether a program tells of a fault as well.
    """
    cause = None if root is None else records[root]
    program = program_of(records)
    roles = _roles_of_driver(records, [i for i in logged if is_of_driver(records[i])], root)
    for index in logged:
        if is_host_kill(records[index]):
            roles[index] = role_of_kill(records[index], cause, program)
    if root is None or cause is None or root not in roles:
        return roles
    roles[root] = ("root", _why_root(cause, explains=explains))
    if is_host_kill(cause):
        others = [index for index, one in enumerate(records) if not (is_kernel_log(one) or one.advice)]
        killed = [index for index in others if explains_end(cause, records[index], program)]
        roles.update((index, ("cascade", why_killed(cause))) for index in killed)
    return roles


def _why_root(root: FaultRecord, *, explains: bool) -> str:
    if not explains:
        return "first fault in the kernel log, and no program tells of one"
    if is_host_kill(root):
        return "the kernel killed a process of the program: what others report is its consequence"
    return "the GPU failed: what programs report is its consequence"


def _roles_of_driver(
    records: Sequence[FaultRecord], logged: Sequence[int], root: int | None
) -> dict[int, tuple[Role, str]]:
    if root is None:
        return {index: _without_root(records[index]) for index in logged}
    links = Links(records, records[root])
    roles = {index: role_beside_root(records[index], records[root], links) for index in logged}
    companions = companions_of(records)
    harmless = [index for index in logged if _is_harmless(records[index], companions)]
    if root not in roles:
        joined = [index for index in harmless if roles[index][0] == "cascade"]
    else:
        joined = [index for index in harmless if records[index].name == _CONTAINED]
    roles.update((index, ("cascade", _why_harmless(records[index]))) for index in joined)
    return roles


def _is_harmless(record: FaultRecord, companions: Sequence[FaultRecord]) -> bool:
    return reading_of(record) == "hardware" and not is_failing_hardware(record, companions)


def _why_harmless(record: FaultRecord) -> str:
    if record.name == _CONTAINED:
        return f"keeps a bad access over NVLink ({_PEER_ACCESS}) to one program: no memory error is told"
    return "errors that were corrected, or a repair: no call fails of it"


def _without_root(record: FaultRecord) -> tuple[Role, str]:
    if record.name == _REMOVAL:
        return "teardown", "the driver removed the channels of a process that ended"
    return "bystander", "it says by itself that nothing failed"


def role_beside_root(record: FaultRecord, root: FaultRecord, links: Links) -> tuple[Role, str]:
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

    A failing GPU shows itself to the program as a late error of some kind (719, 999, 214, 700). What the
    device said of the program's own code stands: it names a kernel, or a condition in it.
    """
    lost = is_sticky(root) or root.code == _NO_DEVICE or root.kind in HARDWARE
    return lost and root.site != "device"


def hardware_before(records: Sequence[FaultRecord], logged: Sequence[int], root: FaultRecord) -> int | None:
    """The message of failed hardware, or of a kill, that explains the error of a program; null = none does.

    It has to be linked with the error (``Links.explains``): hosts have many GPUs, and an accusation of one
    that the program never used sends people to the wrong card.

    Args:
        records: All faults.
        logged: Indices of the kernel's messages, by line.
        root: The fault that would be root without them.
    """
    kills = [index for index in logged if is_host_kill(records[index])]
    program = program_of(records)
    killed = next((index for index in kills if explains_end(records[index], root, program)), None)
    if killed is not None or not logged or not is_explainable(root):
        return killed
    links, companions = Links(records, root), companions_of(records)
    messages = [index for index in logged if is_of_driver(records[index])]
    return next((index for index in messages if is_cause(records[index], companions, links)), None)


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
        return record.source == root.source and 0 <= record.line - root.line <= _SAME_LINES
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
    told = [one for one in records if not is_kernel_log(one) and is_explainable(one)]
    links = [links for one in told if (links := Links(records, one)).explains(root)]
    return bool(links) and all(one.of(root).by_time for one in links)

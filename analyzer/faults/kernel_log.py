"""Roles of what the kernel driver logged (formats.md 3.20, 5): it names GPU and process, never a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.faults.first import seconds_between
from analyzer.faults.sticky import is_sticky
from analyzer.faults.xids import XidReading, by_name
from analyzer.model import FaultRecord
from analyzer.schema import Role

_SAME_EVENT_S = 600  # a watchdog reports ten minutes after the fault
_ZONES_S = 14 * 3600 + _SAME_EVENT_S  # the largest difference between two zones
_LATER_S = 60  # firmware that does not answer is told after its timeout of some 45 s
_NO_DEVICE = 100
_VERDICT = "Xid 154"  # the driver asks for a reset after faults of software too
_FAMILY = frozenset(
    {
        "illegal_address",
        "misaligned_address",
        "invalid_address_space",
        "launch_failure",
        "illegal_instruction",
        "device_assert",
    }
)


def is_kernel_log(record: FaultRecord) -> bool:
    """Whether the kernel driver said it."""
    return record.site == "kernel_log"


def reading_of(record: FaultRecord) -> XidReading:
    """Hardware, software or secondary. What is not in the table is read by its kind."""
    row = by_name(record.name)
    if row is not None and record.kind != "unknown":
        return row.reading
    if row is not None or record.kind == "unknown":
        return "secondary"
    return "hardware" if record.kind in {"ecc_error", "device_lost"} else "software"


def pid_of(process: str) -> int | None:
    """The pid in a process key such as ``python3 pid=763`` or ``python3[763]``; null = it has none."""
    inside = process.rpartition("[")[2].removesuffix("]")
    if "pid=" not in process and process.endswith("]") and inside.isascii() and inside.isdigit():
        return int(inside)
    number = process.rpartition("pid=")[2].partition(" ")[0].partition("/")[0]
    return int(number) if "pid=" in process and number.isdigit() else None


def first_of_kernel_log(records: Sequence[FaultRecord], indices: Sequence[int]) -> int:
    """The root among driver messages alone: hardware before software, never one that only cleans up."""
    for reading in ("hardware", "software"):
        found = [index for index in indices if reading_of(records[index]) == reading]
        if found:
            return found[0]
    return indices[0]


def role_beside_root(record: FaultRecord, root: FaultRecord) -> tuple[Role, str]:
    """The role of a driver message beside the root fault, and why: it supports it or is of something else."""
    if is_kernel_log(root):
        return _beside_logged(record, root)
    mine, its = pid_of(record.process), pid_of(root.process)
    if not _same_time(record, root):
        return "bystander", "the kernel log has it at another time"
    same_pid = mine is not None and mine in {its, root.pid}
    if mine is not None and its is not None and not same_pid:
        return "bystander", f"the kernel log names pid {mine}, not {its} (inside a container pids differ)"
    reading = reading_of(record)
    if reading == "hardware":
        return "cascade", f"the kernel log says hardware for the fault at line {root.line}"
    if reading == "secondary":
        return "cascade", "the driver cleans up after the fault"
    told = "by the same pid" if same_pid else "their pids cannot be compared"
    if root.kind in _FAMILY:
        return "cascade", f"the kernel log's side of the fault at line {root.line} ({told})"
    return "bystander", "the kernel log has a fault of another kind"


def hardware_before(records: Sequence[FaultRecord], logged: Sequence[int], root: FaultRecord) -> int | None:
    """The hardware message that explains the CUDA error of a program; null = there is none.

    A failing GPU shows itself to the program as a late error of some kind (719, 999, 214, 700). What the
    device said of the program's own code stands: it names a kernel, or a condition in it.

    Args:
        records: All faults.
        logged: Indices of the driver's messages, by line.
        root: The fault that would be root without them.
    """
    lost = is_sticky(root) or root.code == _NO_DEVICE or root.kind in {"ecc_error", "device_lost"}
    if not lost or root.site == "device" or root.vendor == "amd":
        return None
    joined = [index for index in logged if role_beside_root(records[index], root)[0] == "cascade"]
    software = [index for index in joined if reading_of(records[index]) == "software"]
    for index in joined:
        record = records[index]
        caused = record.name == _VERDICT and any(before < index for before in software)
        if reading_of(record) == "hardware" and not caused and not _long_after(record, root):
            return index
    return None


def _long_after(record: FaultRecord, root: FaultRecord) -> bool:
    """A message that came when the program had failed already; two logs can stand in different zones."""
    passed = seconds_between(root, record)
    return passed is not None and record.source == root.source and passed > _LATER_S


def _beside_logged(record: FaultRecord, root: FaultRecord) -> tuple[Role, str]:
    """Two messages of the driver: one event if they name one process or its GPU."""
    if record.process == root.process:
        return "cascade", f"the same process as line {root.line}"
    if reading_of(root) == "hardware" and reading_of(record) != "software" and _same_time(record, root):
        return "cascade", f"follows the hardware fault at line {root.line}"
    return "bystander", f"another process; the first fault of the kernel log is at line {root.line}"


def joined_hardware(records: Sequence[FaultRecord], root: FaultRecord) -> list[FaultRecord]:
    """Driver messages that make hardware the cause of the root fault."""
    return [
        record
        for record in records
        if is_kernel_log(record)
        and reading_of(record) == "hardware"
        and (record is root or role_beside_root(record, root)[0] == "cascade")
    ]


def _same_time(record: FaultRecord, root: FaultRecord) -> bool:
    """False only where both clocks can be compared and they are far apart.

    Two logs can stand in different zones, and their texts do not say so: whole hours between them are none.
    """
    passed = seconds_between(record, root)
    if passed is None:
        return True
    apart = abs(passed)
    if record.source != root.source and apart <= _ZONES_S:
        apart = min(apart % 3600, 3600 - apart % 3600)
    return apart <= _SAME_EVENT_S

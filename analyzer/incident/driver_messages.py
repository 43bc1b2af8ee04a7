"""How one message of a driver log has to be read: hardware, software, or what follows something else."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.incident.host_kills import is_host_kill
from analyzer.model import FaultRecord, XidEvent
from analyzer.tables.kinds import HARDWARE
from analyzer.tables.xids import Xid, XidReading, by_name, by_number

CONTAINED, PEER_ACCESS = "Xid 94", "Xid 137"
SAME_LINES = 50  # where there is no clock
_SAME_SECOND_NS = 10**9
_MEMORY = frozenset(f"Xid {number}" for number in (48, 63, 64, 95, 140, 171, 172))


def is_of_driver_log(record: FaultRecord) -> bool:
    """Whether the driver log has it, of a GPU or of a kill: it belongs to no process of the log by itself."""
    return is_of_driver(record) or is_host_kill(record)


def is_of_driver(record: FaultRecord) -> bool:
    """Whether the driver of a GPU said it."""
    return record.site == "driver_log"


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
    told = record.detail
    cause = told.caused_by if isinstance(told, XidEvent) else None
    return by_name(record.name) if cause is None else by_number(cause)


def is_no_fault(record: FaultRecord) -> bool:
    """A message that says by itself that nothing failed: a clean-up, a verdict, an event that is not fatal.

    Xid 45 without a cause is also printed for Ctrl-C and a kill; Xid 154 sums up others. Xid 43 is none of
    them: its channel was reset because the application made a fault.
    """
    row = _row(record)
    return row is not None and (not row.alone or (row.reading == "hardware" and record.kind == "unknown"))


def companions_of(records: Sequence[FaultRecord]) -> list[FaultRecord]:
    """Driver messages that say how an Xid 94 has to be read; none where no access over NVLink failed."""
    told = [one for one in records if is_of_driver(one) and one.name in {PEER_ACCESS, *_MEMORY}]
    return told if any(one.name == PEER_ACCESS for one in told) else []


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
    if record.name != CONTAINED:
        return True
    around = {one.name for one in companions if _is_around(one, record)}
    return PEER_ACCESS not in around or bool(around & _MEMORY)


def _is_around(one: FaultRecord, record: FaultRecord) -> bool:
    if one.source != record.source:
        return False
    if one.time_ns is None or record.time_ns is None:
        return abs(one.line - record.line) <= SAME_LINES
    return abs(one.time_ns - record.time_ns) <= _SAME_SECOND_NS

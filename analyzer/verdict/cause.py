"""The cause class: software, hardware, memory or unknown, decided here alone (design.md rule 7)."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.incident.driver_links import Links, says_what_code_did
from analyzer.incident.driver_log import is_explainable, joined_hardware
from analyzer.incident.driver_messages import is_of_driver, reading_of
from analyzer.incident.host_kills import is_host_kill
from analyzer.model import FaultRecord
from analyzer.schema import CauseClass
from analyzer.tables.kinds import BY_NAME
from analyzer.tables.xids import AMD_NAMES, by_name
from analyzer.verdict.driver_notes import own_verdicts, unlinked_hardware

KILL = "SIGKILL"
SENT = frozenset({KILL, "SIGTERM", "SIGINT", "SIGHUP"})  # signals that somebody sends: why is not in them
_PUSH_BUFFER = "Xid 32"  # mostly PCIe, says NVIDIA's catalogue: neither software nor hardware by itself


def is_sent(fault: FaultRecord) -> bool:
    """Whether the process ended by a signal that somebody sent."""
    return fault.kind == "host_abort" and fault.name in SENT


def cause_class(records: Sequence[FaultRecord], root: FaultRecord) -> CauseClass | None:
    """The first of these that applies; null = the log does not tell.

    A killed process whose memory ran out failed for memory; a hardware message that is joined with the fault
    makes hardware the cause; a driver log that tells something else leaves it open; else the kind tells.
    """
    if ran_out_of_memory(records, root):
        return "memory"
    logged = [record for record in records if is_of_driver(record)]
    if logged and joined_hardware(records, root):
        return "hardware"
    if logged and _is_unclear(logged, root, records):
        return None
    return cause_of_kind(root)


def cause_of_kind(fault: FaultRecord) -> CauseClass | None:
    """What the kind alone says; null for a process that somebody killed."""
    return None if is_sent(fault) else BY_NAME[fault.kind].cause_class


def ran_out_of_memory(records: Sequence[FaultRecord], root: FaultRecord) -> list[FaultRecord]:
    """Records of memory that ran out before a process was killed; empty for any other end."""
    if root.kind != "host_abort" or root.name != KILL:
        return []
    return [one for one in records if one.kind == "out_of_memory" and not is_host_kill(one)]


def _is_unclear(logged: Sequence[FaultRecord], root: FaultRecord, records: Sequence[FaultRecord]) -> bool:
    """Software is what an error is taken for where nothing is told; here the driver tells something else."""
    if is_of_driver(root):
        unread = root.vendor == "nvidia" and (by_name(root.name) is None or root.name == _PUSH_BUFFER)
        return unread or root.name in AMD_NAMES
    software = any(reading_of(one) == "software" for one in logged)
    if not is_explainable(root) or software:
        return False
    links = Links(records, root)
    hinted = any(links.of(one).near for one in unlinked_hardware(records, root))
    return bool(own_verdicts(records, root)) or (hinted and not says_what_code_did(root))

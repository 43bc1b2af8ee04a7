"""What a fault means for its process: lost context, death, or a peer's failure (formats.md 1.3, 5)."""

from __future__ import annotations

from analyzer.model import FaultRecord
from analyzer.tables.codes import by_code
from analyzer.tables.kinds import DEATHS, PEERS, STICKY

_STICKY_STATUSES = ("_EXECUTION_FAILED", "_MAPPING_ERROR")  # a kernel faulted: theirs, or one before


def is_sticky(record: FaultRecord) -> bool:
    """Whether the context is lost with this fault: all later calls of the process fail too."""
    if record.code is not None and (known := by_code(record.code)):
        return known.sticky
    if record.kind == "library_status":
        return (record.name or "").endswith(_STICKY_STATUSES)
    return record.kind in STICKY


def is_death(record: FaultRecord) -> bool:
    """The end of a process by a signal, which says nothing about its cause."""
    return record.kind in DEATHS


def is_victim(record: FaultRecord) -> bool:
    """Waiting for a peer, or having lost one: another process failed (formats.md 1 D, 5.4)."""
    return record.kind in PEERS

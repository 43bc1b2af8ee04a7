"""What a fault means for its process: lost context, death, or a peer's failure (formats.md 1.3, 5)."""

from __future__ import annotations

from analyzer.model import FaultRecord
from analyzer.tables.codes import by_code

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
_STICKY_STATUSES = ("_EXECUTION_FAILED", "_MAPPING_ERROR")  # a kernel faulted: theirs, or one before
_PEER_KINDS = frozenset({"peer_lost", "hang_timeout"})
_DEATH_KINDS = frozenset({"host_abort", "host_segfault"})


def is_sticky(record: FaultRecord) -> bool:
    """Whether the context is lost with this fault: all later calls of the process fail too."""
    if record.code is not None and (known := by_code(record.code)):
        return known.sticky
    if record.kind == "library_status":
        return (record.name or "").endswith(_STICKY_STATUSES)
    return record.kind in _STICKY_KINDS


def is_death(record: FaultRecord) -> bool:
    """The end of a process by a signal, which says nothing about its cause."""
    return record.kind in _DEATH_KINDS


def is_victim(record: FaultRecord) -> bool:
    """Waiting for a peer, or having lost one: another process failed (formats.md 1 D, 5.4)."""
    return record.kind in _PEER_KINDS

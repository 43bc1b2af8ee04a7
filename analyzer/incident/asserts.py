"""Texts of device asserts among other faults: what one explains, and which process it can be of.

The driver writes them past every tag (formats.md 3.2). CUDA reports an assert as 710 and a trap as 719, never
as a bad address: who met 700 met another fault.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.model import FaultRecord
from analyzer.tables.kinds import OTHER_CODES
from analyzer.witness import witness_named

ASSERT, TRAP = 710, 719


def is_assert_text(record: FaultRecord) -> bool:
    """Whether the device itself printed the expression that failed; tools name a kernel instead."""
    return (
        record.kind == "device_assert" and record.site == "device" and not witness_named(record.witness).tool
    )


def explains(text: FaultRecord, report: FaultRecord) -> bool:
    """Whether the assert can be what the report met.

    Only CUDA's own assert has a code of its own. ROCm aborts, a trap was seen as several codes, and a build
    with ``TORCH_USE_CUDA_DSA`` (which knows its GPU) writes the text beside whatever error came.
    """
    own = text.code == ASSERT and text.vendor == "nvidia" and text.device is None
    return not own or report.kind not in OTHER_CODES


def without_unexplained(records: Sequence[FaultRecord], sticky: Sequence[int]) -> list[int]:
    """The sticky faults of one process that can be its root, as far as asserts go.

    The first assert counts before the later ones, whichever of them names a kernel. None counts where a
    report that it does not explain came first: the context was lost then, so another process printed it.
    """
    kept: list[int] = []
    other: int | None = None
    asserted = False
    for index in sticky:
        record = records[index]
        if not is_assert_text(record):
            if other is None and record.kind in OTHER_CODES:
                other = index
            kept.append(index)
        elif not asserted and (other is None or explains(record, records[other])):
            asserted = True
            kept.append(index)
    return kept


def untagged_sources(records: Sequence[FaultRecord], roots: Sequence[int]) -> set[int]:
    """Inputs in which an assert without a tag is the root of its own: who reports one can have met it."""
    return {
        records[index].source
        for index in roots
        if is_assert_text(records[index]) and not records[index].process
    }


def is_report_of_assert(record: FaultRecord) -> bool:
    """Whether a call of the host met an assert."""
    return record.kind == "device_assert" and not is_assert_text(record) and record.site != "driver_log"

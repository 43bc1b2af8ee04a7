"""Which of several processes failed first (design.md rule 1, formats.md 5.4, 7.8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from analyzer.model import FaultRecord
from analyzer.traits import is_victim

_SECOND_NS = 1_000_000_000
_YEAR_NS = 365 * 86_400 * _SECOND_NS
_WRAPS = {"no_date": 86_400 * _SECOND_NS, "no_year": _YEAR_NS}  # midnight; December to January


def first_of_roots(records: Sequence[FaultRecord], roots: Sequence[int], ranks: Sequence[int]) -> int:
    """The root of the process that failed first.

    Only roots that explain most compete: who lost a peer, hands a failure on or tears down never beats who
    failed. Among them the earliest clock wins where all tell the same kind of time, else the rank that a
    launcher saw fail first, else the first in the order of inputs and lines.

    Args:
        records: All faults.
        roots: Index of the root of each process, by first appearance.
        ranks: How much each root explains beside the others, 0 = most.
    """
    least = min(ranks)
    best = [index for index, rank in zip(roots, ranks, strict=True) if rank == least]
    clocks = {records[index].clock for index in best}
    if len(clocks) == 1 and None not in clocks and all(records[index].time_ns is not None for index in best):
        start = _start(records, best)
        return min(best, key=lambda index: (_since(records[index], start), index))
    seen = _observed_first(records)
    return min(best, key=lambda index: (records[index].rank not in seen, index))


def seconds_between(first: FaultRecord, second: FaultRecord) -> float | None:
    """Seconds from one fault to another; null = their clocks cannot be compared."""
    if first.clock is None or first.clock != second.clock or None in {first.time_ns, second.time_ns}:
        return None
    if first.clock == "boot" and first.source != second.source:
        return None
    return ((second.time_ns or 0) - (first.time_ns or 0)) / _SECOND_NS


def who(record: FaultRecord) -> str:
    """A process in words."""
    if record.rank is not None and not record.process.endswith(f"rank{record.rank}"):
        return f"{record.process or 'the process'} (rank {record.rank})"
    return record.process or "another process"


def _observed_first(records: Sequence[FaultRecord]) -> set[int | None]:
    """Ranks that a launcher saw fail first (torchrun's ``Root Cause``)."""
    return {r.rank for r in records if r.first_observed and r.rank is not None and not is_victim(r)}


def _start(records: Sequence[FaultRecord], indices: Sequence[int]) -> int:
    """Where a clock without date or year begins: behind its longest pause (midnight, or New Year)."""
    wrap = _WRAPS.get(records[indices[0]].clock or "")
    times = sorted({records[index].time_ns or 0 for index in indices})
    if wrap is None or times[-1] - times[0] <= wrap // 2:
        return 0
    gaps = [(after - before, after) for before, after in pairwise(times)]
    return max(gaps)[1]


def _since(record: FaultRecord, start: int) -> int:
    time_ns = record.time_ns or 0
    return time_ns if time_ns >= start else time_ns + _YEAR_NS

"""How much a fault explains beside others; less is more."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.incident.asserts import is_report_of_assert, untagged_sources
from analyzer.model import FaultRecord
from analyzer.traits import is_death, is_victim
from analyzer.witness import is_unexplained


def explanation_rank(record: FaultRecord) -> int:
    """How much a fault explains beside those of other processes; less is more."""
    if record.teardown:
        return 4
    if record.relayed:
        return 3
    if is_victim(record):
        return 2
    return int(is_unexplained(record))


def explanation_ranks(records: Sequence[FaultRecord], roots: Sequence[int]) -> list[int]:
    """How much each root explains; a report of an assert explains less than an assert that nobody owns."""
    unowned = untagged_sources(records, roots)
    watched = any(records[index].kind == "hang_timeout" for index in roots)
    ranks = []
    for index in roots:
        record = records[index]
        if _is_first_death(record, watched=watched):
            ranks.append(1)
            continue
        less = record.source in unowned and is_report_of_assert(record)
        ranks.append(max(1, explanation_rank(record)) if less else explanation_rank(record))
    return ranks


def _is_first_death(record: FaultRecord, *, watched: bool) -> bool:
    """Whether a launcher saw this rank die first, by a signal: its peers lost it (formats.md 5.4).

    Where a collective timed out, SIGABRT is how the watchdog of a waiting rank ends its process.
    """
    return record.first_observed and is_death(record) and not (watched and record.name == "SIGABRT")

"""Identical repeats of one process are one fault with a count (formats.md 5.5, 7.3).

A dead context answers every later call with the same words. The first of them keeps its place; the others
only add to its count. This is the one place where records are folded across witnesses' own limits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import msgspec

from analyzer.incident.incident import Change, Drop, Incident, SetRecord, place_of
from analyzer.model import FaultRecord


def fold_repeats(incident: Incident) -> Iterator[Change]:
    """Faults that differ only in place and time are one: the first, with their count and the last line."""
    groups: dict[Hashable, list[int]] = {}
    for index, record in enumerate(incident.records):
        groups.setdefault(_words(record), []).append(index)
    for first, *more in groups.values():
        if not more:
            continue
        all_of_it = [incident.records[index] for index in (first, *more)]
        record = msgspec.structs.replace(
            all_of_it[0],
            count=sum(one.count for one in all_of_it),
            last_line=max(one.last_line for one in all_of_it),
        )
        yield SetRecord(index=first, record=record, why="the process says the same again")
        why = f"line {record.line} says the same"
        for index in more:
            yield Drop(index=index, why=why, lines=(place_of(record),))


def _words(record: FaultRecord) -> Hashable:
    """All that tells one fault from another, save where and when it was printed.

    Stacks and fusion trees are left out: equal kernels of one text have equal ones.
    """
    who = (record.source, record.process, record.rank, record.witness)
    what = (record.kind, record.site, record.code, record.name, record.text, record.label)
    where = (record.kernel, record.entry_point, record.device, record.python, record.location)
    told = (record.teardown, record.met, record.relayed, record.first_observed, record.advice)
    return who, what, where, told, record.state

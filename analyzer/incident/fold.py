"""Identical repeats of one process are one fault with a count (formats.md 5.5, 7.3).

A dead context answers every later call with the same words. The first of them keeps its place; the others
only add to its count. This is the one place where records are folded across witnesses' own limits.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from analyzer.model import FaultRecord


def fold_repeats(records: Sequence[FaultRecord]) -> list[FaultRecord]:
    """Fold the faults that differ only in place and time.

    Args:
        records: Faults in the order of inputs and lines.

    Returns:
        The first of each, in the same order, with the sum of their counts and the last line of the last one.
    """
    places: dict[Hashable, int] = {}
    folded: list[FaultRecord] = []
    repeats: list[list[FaultRecord]] = []
    for record in records:
        at = places.setdefault(_words(record), len(folded))
        if at == len(folded):
            folded.append(record)
            repeats.append([])
        else:
            repeats[at].append(record)
    return [_sum(first, more) if more else first for first, more in zip(folded, repeats, strict=True)]


def _sum(first: FaultRecord, more: Sequence[FaultRecord]) -> FaultRecord:
    count = first.count + sum(record.count for record in more)
    last_line = max(first.last_line, *(record.last_line for record in more))
    return msgspec.structs.replace(first, count=count, last_line=last_line)


def _words(record: FaultRecord) -> Hashable:
    """All that tells one fault from another, save where and when it was printed.

    Stacks and fusion trees are left out: equal kernels of one text have equal ones.
    """
    who = (record.source, record.process, record.rank, record.witness)
    what = (record.kind, record.site, record.code, record.name, record.text, record.label)
    where = (record.kernel, record.entry_point, record.device, record.python, record.location)
    told = (record.teardown, record.met, record.relayed, record.first_observed, record.advice)
    return who, what, where, told, record.state

"""The fault of one process that explains its others (formats.md 5.1-5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.incident.asserts import without_unexplained
from analyzer.incident.explanation import explanation_rank
from analyzer.incident.first import seconds_between
from analyzer.model import FaultRecord
from analyzer.tables.kinds import CHECKS
from analyzer.traits import is_death, is_sticky
from analyzer.witness import is_unexplained

RECOVERED_S = 120.0  # who lives on so long after an error did not die of it (teardown takes seconds)


def root_of_process(records: Sequence[FaultRecord], indices: Sequence[int]) -> int:
    """The fault of one process that explains its others (formats.md 5.1-5.3).

    A check that fired before the first sticky fault; else the most telling sticky fault (device before
    report); else the first error that somebody understands; else an exception or a death; else a victim's
    complaint. What only hands a failure on, and what destructors print, count where nothing else is known.
    """
    usable = _prefer(records, indices)
    sticky = without_unexplained(records, [index for index in usable if is_sticky(records[index])])
    sticky = [index for index in sticky if not records[index].met] or sticky
    checks = [index for index in usable if records[index].kind in CHECKS]
    if checks and (not sticky or checks[0] < sticky[0]):
        return checks[0]
    if sticky:
        return min(sticky, key=lambda index: (_directness(records[index]), index))
    ranks = [explanation_rank(records[index]) for index in usable]
    first = usable[ranks.index(min(ranks))]
    deaths = [index for index in usable if is_death(records[index]) and index >= first]
    if deaths and (first in deaths or _recovered(records[first], records[deaths[0]])):
        return _first_exception(records, usable, deaths[0])
    return first


def _prefer(records: Sequence[FaultRecord], indices: Sequence[int]) -> Sequence[int]:
    told = [index for index in indices if not records[index].teardown]
    if told and all(is_death(records[index]) or _is_refused(records[index]) for index in told):
        # Nobody says what it died of but the destructors and pollers that met the fault before; a call that
        # refuses its arguments afterwards does so in a lost context.
        met = [index for index in indices if index < told[0] and records[index].teardown]
        told = sorted([*told, *(index for index in met if is_sticky(records[index]))])
    own = [index for index in told if not records[index].relayed]
    if kills := _kills_before(records, told, own):
        return kills
    seen_first = [index for index in told if records[index].first_observed]
    return own or seen_first or told or indices


def _kills_before(records: Sequence[FaultRecord], told: Sequence[int], own: Sequence[int]) -> list[int]:
    """Kills for memory that a supervisor told right before the processes of the job died of them."""
    if not own or not all(is_death(records[index]) for index in own):
        return []
    kills = [index for index in told if records[index].relayed and records[index].kind == "out_of_memory"]
    first = records[own[0]]
    return [index for index in kills if index < own[0] and not _recovered(records[index], first)]


def _is_refused(record: FaultRecord) -> bool:
    return record.code is not None and not is_sticky(record) and record.kind != "out_of_memory"


def _directness(record: FaultRecord) -> int:
    """Core dump, sanitizer or ROCm's kernel name before the assert text before a report of the host.

    Words that any program can print count where nobody knows their printer.
    """
    if record.site != "device":
        return 2 + int(is_unexplained(record))
    return int(record.kind == "device_assert" and record.state is None)


def _recovered(error: FaultRecord, death: FaultRecord) -> bool:
    """Whether the process lived on after an error for so long that it did not die of it."""
    passed = seconds_between(error, death)
    return passed is not None and passed > RECOVERED_S


def _first_exception(records: Sequence[FaultRecord], usable: Sequence[int], death: int) -> int:
    """An exception shortly before a death explains it: who raised tears down, and can abort there."""
    raised = [index for index in usable if is_unexplained(records[index]) and index < death]
    near = [index for index in raised if not _recovered(records[index], records[death])]
    return near[0] if near else death

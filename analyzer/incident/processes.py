"""Which faults belong to one process (formats.md 3.2, 5, 6).

A process writes in several ways: tagged lines, lines that C++ code writes past the tag (``[rank0]:[E...``),
and text of the driver or the runtime that has no tag at all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from analyzer.incident.asserts import TRAP, explains, is_assert_text
from analyzer.incident.driver_messages import is_of_driver_log
from analyzer.incident.incident import Change, Incident, SetRecord, place_of
from analyzer.model import FaultRecord
from analyzer.numbers import MAX_RANK, natural
from analyzer.traits import is_death, is_sticky

Key = tuple[int, str]
Report = tuple[int, Key]


def group_by_process(records: Sequence[FaultRecord]) -> list[list[int]]:
    """Indices of the faults of each process, by first appearance; the driver log and advice are in none.

    Args:
        records: Faults in the order of inputs and lines.
    """
    groups: dict[Key, list[int]] = {}
    for index, record in enumerate(records):
        if not is_of_driver_log(record) and not record.advice:
            groups.setdefault((record.source, record.process), []).append(index)
    _merge_ranks(records, groups)
    for parent, members in _parents(groups).items():
        _hand_out(records, groups, parent, members)
    _adopt_files_of_tools(records, groups)
    return sorted((sorted(group) for group in groups.values() if group), key=lambda group: group[0])


def name_processes(incident: Incident) -> Iterator[Change]:
    """A fault without a tag has the name of the process of its input that it belongs to."""
    records = incident.records
    for process in group_by_process(records):
        tags: dict[Key, FaultRecord] = {}
        for index in process:
            record = records[index]
            if record.process:
                tags.setdefault((record.source, container_of(record.process)), record)
        for index in process:
            record = records[index]
            tag = tags.get((record.source, record.process))
            if tag is not None:
                rank = tag.rank if record.rank is None else record.rank
                named = msgspec.structs.replace(record, process=tag.process, rank=rank)
                why = f"it tells of what {tag.process} tells"
                yield SetRecord(index=index, record=named, why=why, lines=(place_of(tag),))


def container_of(process: str) -> str:
    """``vllm-1`` of ``vllm-1/Worker_TP0 pid=7``; empty = none."""
    return process.rpartition("/")[0]


def _merge_ranks(records: Sequence[FaultRecord], groups: dict[Key, list[int]]) -> None:
    """``rank0`` is the process that a launcher's tag calls rank 0, if exactly one does.

    Exception hooks and c10 write ``[rank0]:`` where the launcher's tag is missing (formats.md 3.6, 6).
    """
    owners: dict[tuple[int, str, int], list[Key]] = {}
    for key, group in groups.items():
        rank = _rank_in(records, group)
        if rank is not None and _rank_of(key[1]) is None:
            owners.setdefault((key[0], container_of(key[1]), rank), []).append(key)
    for key in list(groups):
        rank = _rank_of(key[1])
        found = owners.get((key[0], container_of(key[1]), rank), []) if rank is not None else []
        tagged = [owner for owner in found if owner[1] != container_of(key[1])]
        if len(tagged) == 1:
            groups[tagged[0]].extend(groups.pop(key))


def _rank_in(records: Sequence[FaultRecord], group: Sequence[int]) -> int | None:
    return next((records[index].rank for index in group if records[index].rank is not None), None)


def _rank_of(process: str) -> int | None:
    """3 of ``rank3`` (and of ``vllm-1/rank3``)."""
    number = process.rpartition("/")[2].removeprefix("rank")
    return natural(number, MAX_RANK) if process.endswith(f"rank{number}") else None


def _parents(groups: Iterable[Key]) -> dict[Key, list[Key]]:
    """Keys of lines without a tag beside tagged ones: the container (or none) with its processes."""
    found: dict[Key, list[Key]] = {}
    for source, process in groups:
        if process:
            found.setdefault((source, container_of(process)), []).append((source, process))
    return found


def _hand_out(
    records: Sequence[FaultRecord], groups: dict[Key, list[int]], parent: Key, members: Sequence[Key]
) -> None:
    """Give untagged faults to the tagged process that tells the same; what nobody tells stays."""
    if parent not in groups:
        return
    found = sorted(
        (index, key) for key in members for index in groups.get(key, ()) if is_sticky(records[index])
    )
    reports = _Reports(records, found)
    ranks = {rank: key for key in members if (rank := _rank_in(records, groups.get(key, ()))) is not None}
    left = []
    for index in groups[parent]:
        record = records[index]
        owner = _nearest(reports.met_by(record), index, record)
        if owner is None and record.rank is not None:
            owner = ranks.get(record.rank)
        elif owner is None and is_death(record):
            owner = _same_pid(record, members) or _before(found, index)
        if owner is None:
            left.append(index)
        else:
            groups[owner].append(index)
    groups[parent] = left
    if not left:
        del groups[parent]


class _Reports:
    """Sticky faults of tagged processes: index and process, by index."""

    def __init__(self, records: Sequence[FaultRecord], found: Sequence[Report]) -> None:
        self._all = found
        self._by_kind: dict[str, list[Report]] = {}
        self._own: dict[str, list[Report]] = {}  # by kind, those that are not handed on
        for index, key in found:
            record = records[index]
            self._by_kind.setdefault(record.kind, []).append((index, key))
            if not record.relayed:
                self._own.setdefault(record.kind, []).append((index, key))
        self._processes = {kind: {key for _, key in of} for kind, of in self._own.items()}
        self._samples = {kind: records[of[0][0]] for kind, of in self._own.items()}

    def met_by(self, record: FaultRecord) -> Sequence[Report]:
        """Reports of what an untagged record tells; of the device's own words any report, in need."""
        if is_assert_text(record):
            return self._of_assert(record)
        same = self._by_kind.get(record.kind, []) if is_sticky(record) else []
        return same or (self._all if _is_of_device(record) else [])

    def _of_assert(self, text: FaultRecord) -> Sequence[Report]:
        """Reports that an assert explains, if they are of one process: several could have printed it."""
        kinds = ["device_assert", *(["launch_failure"] if text.code == TRAP else [])]
        same = [kind for kind in kinds if kind in self._own]
        fitting = same[:1] or [kind for kind, one in self._samples.items() if explains(text, one)]
        owners = set[Key]().union(*(self._processes[kind] for kind in fitting))
        if len(owners) != 1:
            return []
        return sorted(report for kind in fitting for report in self._own[kind])


def _is_of_device(record: FaultRecord) -> bool:
    return record.site == "device"


def _nearest(reports: Sequence[Report], index: int, record: FaultRecord) -> Key | None:
    """The device speaks before its process reports, C++ code dies after it did."""
    after, before = _after(reports, index), _before(reports, index)
    return (after or before) if _is_of_device(record) else (before or after)


def _after(reports: Sequence[Report], index: int) -> Key | None:
    at = bisect_left(reports, (index, (0, "")))
    return reports[at][1] if at < len(reports) else None


def _before(reports: Sequence[Report], index: int) -> Key | None:
    at = bisect_left(reports, (index, (0, "")))
    return reports[at - 1][1] if at else None


def _same_pid(record: FaultRecord, members: Sequence[Key]) -> Key | None:
    if record.pid is None:
        return None
    return next((key for key in members if f"pid={record.pid}" in key[1].split("/")[-1].split(" ")), None)


def _adopt_files_of_tools(records: Sequence[FaultRecord], groups: dict[Key, list[int]]) -> None:
    """A cuda-gdb text or a core dump beside the log has no tag: it describes the process that died first.

    An assert that stands between tagged lines is no such text: nobody has it because nobody is known to.
    """
    tagged = {source for source, process in groups if process}
    tools = [
        key
        for key, group in groups.items()
        if key[1] == ""
        and all(_is_of_device(records[index]) for index in group)
        and not (key[0] in tagged and any(is_assert_text(records[index]) for index in group))
    ]
    of_tools = set(tools)
    others = [key for key in groups if key not in of_tools]
    if not others:
        others, tools = tools[:1], tools[1:]
    for key in tools:
        groups[others[0]].extend(groups.pop(key))

"""Kernels whose name the end of an input cuts: what is left of it can be another kernel's name.

A tool prints its report over several lines, so the line of the fault can be whole and that of the name not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from analyzer.incident.cut_end import is_cut_off
from analyzer.incident.incident import Change, Incident, SetRecord, SetTrust
from analyzer.ingest.reader import LineReader
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, Line, TrustDecision
from analyzer.witness import witness_named

_LINES = 200  # of a report; a longer one named its kernel long before
_NEAR_LINES = 3  # a further frame stands so close below the one that named a kernel
_DUMP_FRAME = re.compile(r"coredump: +#")
_ANNOUNCES = "it announces an exception that is not shown"
_MARK, _FRAME = "========= ", "Device Frame:"


def cut_names(incident: Incident) -> Iterator[Change]:
    """A kernel whose name the end of its input cuts is none: what is left can be another one's name."""
    for index, fault in enumerate(incident.records):
        if fault.state is not None and _is_cut(incident.known.readers[fault.source], fault):
            whole = msgspec.structs.replace(fault, kernel=None, state=None)
            yield SetRecord(index=index, record=whole, why="the input ends inside the name of the kernel")


def cut_off(known: Knowledge, fault: FaultRecord) -> str | None:
    """Why a text that the end of its input cuts names nobody; null = it is whole."""
    if fault.announces:
        return f"line {fault.line} only announces an exception, and none stands behind it"
    reader = known.readers[fault.source]
    if is_cut_off(reader, fault.line):
        return f"the input ends in the middle of line {fault.line}, inside the text of the fault"
    if _ends_inside(reader, fault):
        last = reader.total_lines
        return f"the input ends in the middle of line {last}, inside the report that names the kernel"
    return None


def cut_text(incident: Incident) -> Iterator[Change]:
    """No place is believed of a root whose text the end of its input cuts."""
    root = incident.root
    if root is not None and cut_off(incident.known, incident.records[root]) is not None:
        announces = incident.records[root].announces
        reason = _ANNOUNCES if announces else "the input ends inside this text: the rest is not known"
        yield SetTrust(index=root, trust=TrustDecision(trust="late", reason=reason))


def _ends_inside(reader: LineReader, fault: FaultRecord) -> bool:
    """Whether the input ends inside the report of a device-side witness that names no kernel."""
    last = reader.total_lines
    if not witness_named(fault.witness).device_side or fault.state is not None or not reader.is_cut(last):
        return False
    return fault.block_first <= last <= fault.last_line + 1


def _is_cut(reader: LineReader, fault: FaultRecord) -> bool:
    """The first line with the name is the last one of the input, or a frame above it is being printed."""
    last = reader.total_lines
    if fault.state is None or not reader.is_cut(last) or not 0 <= last - fault.block_first <= _LINES:
        return False
    lines = reader.lines(fault.block_first, last)
    word = re.compile(rf"(?<!\w){re.escape(fault.state.kernel)}(?!\w)")
    named = [line.number for line in lines if word.search(line.text)]
    if not named or not lines:
        return False
    whole = [number for number in named if number < last]
    return not whole or (last - whole[-1] <= _NEAR_LINES and _is_frame(lines[-1]))


def _is_frame(line: Line) -> bool:
    """A stack goes on: its outermost frame is the kernel."""
    said = line.text.partition(_MARK)[2].strip()
    return bool(_DUMP_FRAME.search(line.text) or (said and said.startswith(_FRAME[: len(said)])))

"""Kernels whose name the end of an input cuts: what is left of it can be another kernel's name.

A tool prints its report over several lines, so the line of the fault can be whole and that of the name not.
"""

from __future__ import annotations

import re

import msgspec

from analyzer.ingest.reader import LineReader
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, Line

_TOOLS = frozenset({"coredump", "cuda-gdb", "compute-sanitizer", "rocm", "device_assert"})
_LINES = 200  # of a report; a longer one named its kernel long before
_NEAR_LINES = 3  # a further frame stands so close below the one that named a kernel
_DUMP_FRAME = re.compile(r"coredump: +#")
_MARK, _FRAME = "========= ", "Device Frame:"


def without_cut_names(known: Knowledge) -> list[FaultRecord]:
    """The faults, without the kernels that the end of their input cuts."""
    return [
        msgspec.structs.replace(fault, kernel=None, state=None)
        if fault.state is not None and _is_cut(known.readers[fault.source], fault)
        else fault
        for fault in known.records
    ]


def ends_inside(known: Knowledge, fault: FaultRecord) -> bool:
    """Whether the input ends inside the report of a device-side witness that names no kernel."""
    reader = known.readers[fault.source]
    last = reader.total_lines
    if fault.witness not in _TOOLS or fault.state is not None or not reader.is_cut(last):
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

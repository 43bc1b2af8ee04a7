"""Random access to lines of a source by number, with byte offsets and the envelope taken off.

Bodies and windows are read this way: a few thousand lines of a file that may have millions. Offsets are
found by counting line ends from the nearest place already known; both ends of the file are known after
the scan, and what matters is nearly always close to the end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import msgspec
import polars as pl

from analyzer.ingest.envelope import strip
from analyzer.ingest.lines import lines_with
from analyzer.ingest.owners import Owners, adopt
from analyzer.model import Line

_CHUNK_BYTES = 1 << 20
_FIRST_CHUNK_BYTES = 1 << 14  # what is asked for is mostly near to what was asked before
_BLOCK_LINES = 512
_CACHED_BLOCKS = 256
_SEARCH_FACTOR = 32  # with N interleaved writers, look at most this many lines for each line wanted


class LineReader:
    """Lines of one source, 1-based. Implements ``analyzer.witness.Fetch``."""

    def __init__(self, path: Path, source: int, total_lines: int, size_bytes: int) -> None:
        self._path = path
        self._file = path.open("rb")
        self._source = source
        self._blocks: OrderedDict[int, list[Line]] = OrderedDict()
        self._writers: OrderedDict[int, dict[str, list[Line]]] = OrderedDict()
        self.total_lines = total_lines
        self._size = size_bytes  # as scanned: the file may have grown since
        self._open_end = self._size > 0 and self._read(self._size - 1, self._size) != b"\n"
        # (line ends before the offset, offset): the start of line n is behind line end n - 1.
        # A file without a last line end counts as if it had one at its end.
        self.owners = Owners()
        self._anchors = [(0, 0), (total_lines, self._size)]

    def is_cut(self, line: int) -> bool:
        """Whether ``line`` is the last one and has no line end: the file may end in the middle of it."""
        return self._open_end and line == self.total_lines

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _read(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        return self._file.read(end - start)

    def offset(self, line: int) -> int:
        """Byte offset of the first byte of ``line`` in the plain (decompressed) bytes."""
        wanted = line - 1
        at = bisect_right(self._anchors, (wanted, self._size + 1))
        low = self._anchors[at - 1]
        if low[0] == wanted:
            return low[1]
        if at == len(self._anchors):  # behind the last line end
            return self._size
        high = self._anchors[at]
        near_low = wanted - low[0] <= high[0] - wanted
        found = self._forward(low, wanted) if near_low else self._backward(high, wanted)
        insort(self._anchors, (wanted, found))
        return found

    def _forward(self, anchor: tuple[int, int], wanted: int) -> int:
        ends, start = anchor
        size = min(_FIRST_CHUNK_BYTES, _CHUNK_BYTES)
        while chunk := self._read(start, start + size):
            size = _CHUNK_BYTES
            count = chunk.count(b"\n")
            if ends + count >= wanted:
                at = -1
                for _ in range(wanted - ends):
                    at = chunk.index(b"\n", at + 1)
                return start + at + 1
            ends, start = ends + count, start + len(chunk)
        return self._size

    def _backward(self, anchor: tuple[int, int], wanted: int) -> int:
        ends, end = anchor
        if end == self._size and self._open_end:
            ends -= 1
        size = min(_FIRST_CHUNK_BYTES, _CHUNK_BYTES)
        while end:
            start = max(0, end - size)
            size = _CHUNK_BYTES
            chunk = self._read(start, end)
            count = chunk.count(b"\n")
            if ends - count < wanted:
                at = len(chunk)
                for _ in range(ends - wanted + 1):
                    at = chunk.rindex(b"\n", 0, at)
                return start + at + 1
            ends, end = ends - count, start
        return 0

    def raw(self, first: int, last: int) -> list[str]:
        """Texts of lines ``first`` to ``last`` (clipped to the file), undecodable bytes replaced."""
        first, last = max(1, first), min(last, self.total_lines)
        if first > last:
            return []
        start, end = self.offset(first), self.offset(last + 1)
        self._file.seek(start)
        text = self._file.read(end - start).decode("utf-8", errors="replace")
        lines = text.split("\n")
        return [line.removesuffix("\r") for line in lines[: last - first + 1]]

    def lines(self, first: int, last: int) -> list[Line]:
        """Lines ``first`` to ``last`` without envelope; one with inner carriage returns gives several."""
        first, last = max(1, first), min(last, self.total_lines)
        wanted = _blocks_of(first, last)
        blocks = self._kept(wanted)
        return [line for block in wanted for line in _between(blocks[block], first, last)]

    def _kept(self, wanted: range) -> dict[int, list[Line]]:
        """The blocks by number. All that are missing are read at once: it costs little more than one."""
        found = {block: self._blocks[block] for block in wanted if block in self._blocks}
        missing = [block for block in wanted if block not in found]
        if missing:
            lines = self._read_lines(missing[0] * _BLOCK_LINES + 1, (missing[-1] + 1) * _BLOCK_LINES)
            found.update({block: [] for block in missing})
            for line in lines:
                block = (line.number - 1) // _BLOCK_LINES
                if block not in self._blocks:
                    found[block].append(line)
        self._blocks.update(found)
        for block in found:
            self._blocks.move_to_end(block)
        while len(self._blocks) > _CACHED_BLOCKS:
            self._blocks.popitem(last=False)
        return found

    def _read_lines(self, first: int, last: int) -> list[Line]:
        raw = self.raw(first, last)
        numbers = pl.int_range(first, first + len(raw), dtype=pl.UInt32, eager=True).alias("line")
        frame = pl.DataFrame([numbers, pl.Series("raw", raw, dtype=pl.String)])
        own = pl.lit(self._source, dtype=pl.UInt16).alias("source")
        stripped = strip(frame.select(own, "line", "raw"))
        columns = ("line", "text", "process", "time_ns", "rank", "level")
        return [
            self._owned(
                Line(
                    source=self._source,
                    number=number,
                    text=text,
                    process=process,
                    time_ns=time_ns,
                    rank=rank,
                    level=level,
                )
            )
            for number, text, process, time_ns, rank, level in zip(
                *(stripped.get_column(name).to_list() for name in columns), strict=True
            )
        ]

    def _owned(self, line: Line) -> Line:
        """The line with what the block above that it belongs to knows about it."""
        owner = self.owners.of(line.number, line.process)
        if owner is None:
            return line
        return msgspec.structs.replace(
            line,
            process=owner.process,
            rank=owner.rank if line.rank is None else line.rank,
            time_ns=owner.time_ns if line.time_ns is None else line.time_ns,
        )

    def after(self, line: int, process: str, limit: int) -> list[Line]:
        """Up to ``limit`` lines of ``process`` after ``line``, in order."""
        found: list[Line] = []
        first, last = line + 1, min(self.total_lines, line + limit * _SEARCH_FACTOR)
        for block in _blocks_of(first, last):
            found.extend(_between(self._written_by(block, process), first, last))
            if len(found) >= limit:
                break
        return found[:limit]

    def before(self, line: int, process: str, limit: int) -> list[Line]:
        """Up to ``limit`` lines of ``process`` before ``line``, in file order."""
        found: list[Line] = []
        first, last = max(1, line - limit * _SEARCH_FACTOR), min(self.total_lines, line - 1)
        for block in reversed(_blocks_of(first, last)):
            found = [*_between(self._written_by(block, process), first, last), *found]
            if len(found) >= limit:
                break
        return found[-limit:]

    def _written_by(self, block: int, process: str) -> Sequence[Line]:
        """Lines of one process in a block: with thousands of writers each has few, and each is asked for."""
        if block not in self._writers:
            writers: dict[str, list[Line]] = {}
            for line in self._kept(range(block, block + 1))[block]:
                writers.setdefault(line.process, []).append(line)
            self._writers[block] = writers
            while len(self._writers) > _CACHED_BLOCKS:
                self._writers.popitem(last=False)
        return self._writers[block].get(process, ())

    def matching(self, literals: Sequence[str]) -> pl.DataFrame:
        """All lines that hold one of the literals, envelope taken off: line, text, process, by line."""
        found = lines_with(self._path, literals).filter(pl.col("line") <= self.total_lines).sort("line")
        found = found.select(pl.lit(self._source, dtype=pl.UInt16).alias("source"), "line", "raw")
        return adopt(strip(found), self.owners).select("line", "text", "process")


def _blocks_of(first: int, last: int) -> range:
    """Numbers of the blocks that hold lines ``first`` to ``last``."""
    return range((first - 1) // _BLOCK_LINES, (last - 1) // _BLOCK_LINES + 1)


def _between(lines: Sequence[Line], first: int, last: int) -> Sequence[Line]:
    """Lines ``first`` to ``last`` of a block, which is sorted; several of one number stay together."""
    if not lines or (lines[0].number >= first and lines[-1].number <= last):
        return lines
    start = bisect_left(lines, first, key=_number)
    return lines[start : bisect_right(lines, last, lo=start, key=_number)]


def _number(line: Line) -> int:
    return line.number

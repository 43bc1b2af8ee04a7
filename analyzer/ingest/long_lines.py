"""Lines that are longer than any reader needs: cut on the way into the copy that is scanned.

A line of a gigabyte (a dump on standard output, a stream without line ends) would be held whole by every
stage. The copy has exactly the lines of the source, so line numbers stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Protocol

LINE_BYTES = 1_000_000  # the longest honest lines seen are op records and JSON events of some 100 KB
TAIL_BYTES = 1 << 16  # behind a progress bar of hours stands what was printed last
_LAST_WORD = 1 << 12  # half a name is a wrong name: the cut goes back to a blank, if one is near
_LOOK_BYTES = 1 << 12


class Target(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> int:
        """Take the next bytes."""


class LineCutter:
    r"""A ``Target`` before a binary file, which passes on no line longer than ``limit``.

    Of a longer line its beginning stays, up to a blank, and what was redrawn last: a carriage return in its
    last ``TAIL_BYTES`` begins a text of its own. Any other text of the rest could be the inside of a string.
    Memory: one line of ``limit``.
    """

    def __init__(self, target: BinaryIO, limit: int = LINE_BYTES) -> None:
        self._target = target
        self._limit = limit
        self._open = bytearray()  # what was kept of the line whose end has not come
        self._tail: bytearray | None = None  # null = the line is not too long
        self.cut_lines = 0
        self.cut_bytes = 0

    def write(self, data: bytes, /) -> int:
        """Take the next bytes, cut anywhere."""
        for start in range(0, len(data), self._limit):
            self._piece(data[start : start + self._limit])
        return len(data)

    def close(self) -> None:
        """Write what is held; the text ends here. The target stays open."""
        self._end()

    def note(self) -> str | None:
        """What was left out, in words. Null = nothing."""
        if not self.cut_lines:
            return None
        lines = "1 line" if self.cut_lines == 1 else f"{self.cut_lines} lines"
        return f"{lines} longer than {self._limit} bytes cut; {self.cut_bytes} bytes were not read"

    def _piece(self, piece: bytes) -> None:
        """At most ``limit`` bytes: only the first and the last line of them can be too long."""
        first, last = piece.find(b"\n"), piece.rfind(b"\n")
        if first < 0:
            self._grow(piece)
            return
        self._grow(piece[:first])
        self._end()
        self._target.write(piece[first : last + 1])
        self._grow(piece[last + 1 :])

    def _grow(self, part: bytes) -> None:
        if self._tail is not None:
            self._tail += part
            self._forget(len(self._tail) - TAIL_BYTES)
            return
        self._open += part
        if len(self._open) > self._limit:
            self.cut_lines += 1
            end = _end_of_text(self._open, self._limit)
            self._tail = self._open[end:]
            del self._open[end:]
            self._forget(len(self._tail) - TAIL_BYTES)

    def _forget(self, count: int) -> None:
        """Drop the first bytes of the tail."""
        if self._tail is not None and count > 0:
            del self._tail[:count]
            self.cut_bytes += count

    def _end(self) -> None:
        """The line is over."""
        if self._tail is not None:
            redrawn = self._tail.find(b"\r")
            self._forget(redrawn if redrawn >= 0 else len(self._tail))
            self._open += self._tail
            self._tail = None
        self._target.write(self._open)
        self._open.clear()


def _end_of_text(line: bytearray, limit: int) -> int:
    """Where to cut: behind the last whole word, or at least the last whole character."""
    blank = line.rfind(b" ", limit - min(limit, _LAST_WORD), limit)
    if blank > 0:
        return blank
    end = limit
    while end > limit - 4 and line[end] & 0xC0 == 0x80:  # inside a character of UTF-8
        end -= 1
    return end


def has_long_line(path: Path, limit: int = LINE_BYTES) -> bool:
    """Whether a line of the file is longer than ``limit``.

    From each line begin it looks for the last line end within ``limit`` bytes, backwards: of a usual log
    that is a few KB for each ``limit``, not the whole file.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        start = 0
        while size - start > limit:
            end = _last_line_end(file, start, start + limit + 1)
            if end is None:
                return True
            start = end + 1
    return False


def _last_line_end(file: BinaryIO, start: int, end: int) -> int | None:
    """Offset of the last line end in a part of the file. Null = there is none."""
    while end > start:
        begin = max(start, end - _LOOK_BYTES)
        file.seek(begin)
        if (found := file.read(end - begin).rfind(b"\n")) >= 0:
            return begin + found
        end = begin
    return None


def shortened(path: Path, target: Path, size_bytes: int) -> str | None:
    """Copy the first ``size_bytes`` of a file without what is too long in its lines, if there is any.

    Returns:
        The note that says what was left out. Null = nothing, and there is no copy.
    """
    if not has_long_line(path):
        return None
    with path.open("rb") as file, target.open("wb") as out:
        cutter = LineCutter(out)
        while size_bytes and (chunk := file.read(min(size_bytes, LINE_BYTES))):
            cutter.write(chunk)
            size_bytes -= len(chunk)
        cutter.close()
    return cutter.note()


def bounded_line(file: BinaryIO, limit: int = LINE_BYTES) -> bytes:
    """The next line with its end; of a longer one its first ``limit`` bytes and its end."""
    line = file.readline(limit)
    rest = line
    while len(rest) == limit and not rest.endswith(b"\n"):
        rest = file.readline(limit)
        line = line[:limit] + b"\n" * rest.endswith(b"\n")
    return line

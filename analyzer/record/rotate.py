"""The file that a recording goes to: plain or zstd, rotated by size, whole up to the last flush after a kill.

Plain bytes are in the page cache as soon as ``write`` returns: they outlive this process. A zstd stream is
cut into blocks by ``flush``; after a kill, everything up to the last flush can be decompressed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import zstandard

from analyzer.errors import UsageError

_UNITS = {"": 1, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}
LEAST_BYTES = 64_000  # below this a file is hardly more than its header
ZSTD_LEVEL = 1  # four times the speed of the default level on logs, nine tenths of its ratio


class LogFile:
    """Writes a log; the older files are ``serve.log.1`` (newest) to ``serve.log.<keep>``.

    A file of that name that is there already becomes ``.1``: it may be the log of the last crash.
    When the disk is full, the recorded program must not die of it: bytes are counted as lost instead.
    """

    def __init__(
        self, path: Path, *, max_bytes: int | None, keep: int, header: Callable[[int], bytes]
    ) -> None:
        """Open the file.

        Args:
            path: Ends in ``.zst`` = compressed.
            max_bytes: Size on disk at which the next line begins a new file; null = one file.
            keep: Older files that stay.
            header: Lines for the top of each file, by the number of the file in this recording (from 0).

        Raises:
            OSError: The file cannot be made.
        """
        self.path = path
        self.lost_bytes = 0
        self.files = 0
        self.last_error: OSError | None = None
        self._max_bytes = max_bytes
        self._keep = keep
        self._header = header
        self._torn = self._stopped = self._dirty = False
        if path.exists() and path.stat().st_size:
            self._shift()
        self._open()

    @property
    def dirty(self) -> bool:
        """Whether there is something that a kill now would lose."""
        return self._dirty

    def write(self, lines: bytes) -> None:
        """Append whole lines; a new file begins between two of them."""
        while lines and self._max_bytes is not None and len(lines) > (room := self._max_bytes - self._size):
            cut = lines.rfind(b"\n", 0, max(room, 0)) + 1
            if not cut and self._size <= self._header_size:
                cut = lines.find(b"\n") + 1 or len(lines)  # one line longer than a file
            self._put(lines[:cut])
            lines = lines[cut:]
            if lines:
                self._rotate()
        if lines:
            self._put(lines)

    def flush(self) -> None:
        """Make what was written readable for others (zstd: end the block)."""
        if self._zstd is not None and self._dirty:
            self._out(self._zstd.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        self._dirty = False

    def close(self) -> None:
        """End the stream and bring the file to the disk itself."""
        if self._zstd is not None:
            self._out(self._zstd.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH))
        with contextlib.suppress(OSError):  # a pipe or /dev/null has no disk
            os.fdatasync(self._fd)
        os.close(self._fd)

    def _put(self, data: bytes) -> None:
        if self._zstd is None:
            self._out(data)
            return
        self._dirty = True
        self._out(self._zstd.compress(data))

    def _out(self, data: bytes) -> None:
        if self._stopped:
            self.lost_bytes += len(data)
            return
        view = memoryview(b"\n" + data if self._torn and data else data)
        try:
            while view:
                written = os.write(self._fd, view)
                self._size += written
                view = view[written:]
            self._torn = False
        except OSError as error:  # no space, quota, stale network file system
            self.lost_bytes += len(view)
            self.last_error = error
            self._torn = True
            self._stopped = self._zstd is not None  # nothing after a gap in a zstd stream can be read

    def _rotate(self) -> None:
        self.close()
        self._shift()
        self._open()

    def _shift(self) -> None:
        for number in range(self._keep, 0, -1):
            older = self.path if number == 1 else numbered(self.path, number - 1)
            with contextlib.suppress(FileNotFoundError):
                older.replace(numbered(self.path, number))

    def _open(self) -> None:
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._zstd = (
            zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj() if self.path.suffix == ".zst" else None
        )
        self._size = 0
        self._put(self._header(self.files))
        self.flush()
        self._header_size = self._size
        self.files += 1


def parse_size(text: str) -> int:
    """``500M`` -> 500 000 000 bytes; K, M and G are powers of ten, none is bytes.

    Raises:
        UsageError: Something else, or less than ``LEAST_BYTES``.
    """
    found = re.fullmatch(r"([0-9]+)([kKmMgG]?)[bB]?", text.strip())
    size = int(found[1]) * _UNITS[found[2].upper()] if found else 0
    if size < LEAST_BYTES:
        raise UsageError(f"--max-size {text!r}: give bytes of at least {LEAST_BYTES}, as in 500M")
    return size


def numbered(path: Path, number: int) -> Path:
    """``serve.log`` -> ``serve.log.2``, ``serve.log.zst`` -> ``serve.log.2.zst`` (zstd wants its suffix)."""
    if path.suffix == ".zst":
        return path.with_name(f"{path.stem}.{number}.zst")
    return path.with_name(f"{path.name}.{number}")

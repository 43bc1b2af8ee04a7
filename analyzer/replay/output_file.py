"""What a child prints, straight into a file, kept as head and tail where it is too much.

The child writes to the file itself: its last words survive its death, and ours. While it runs, the middle of
a large file is given back to the disk as a hole; afterwards head and tail are joined around a line that says
how much is left out.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

LIMIT_BYTES = (
    1_000_000_000  # the op log of a run is larger, but the failure is at its end, the setup at its head
)
_KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02  # linux/falloc.h
_CHUNK_BYTES = 1 << 20
_UNTRIMMED = 16  # times the limit, where a file system has no holes
_FULL_BYTES = 64 << 10  # with less than this left, writes have failed
_LINE_BYTES = 1 << 20  # how far a line end is looked for


class OutputFile:
    """The output of one child. Call ``trim`` while it runs and ``finish`` when nobody writes any more."""

    def __init__(self, path: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        """Make the file; what was at its path is replaced."""
        self.path = path
        self.left_out_bytes = 0
        self.disk_full = False
        self._half = limit_bytes // 2
        path.unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o644)

    def fileno(self) -> int:
        """For ``Popen``."""
        return self._fd

    def trim(self) -> bool:
        """Give the middle back to the disk; false = far too much, on a file system that cannot do that."""
        size = os.fstat(self._fd).st_size
        if size <= 2 * self._half:
            return True
        return _punch(self._fd, self._half, size - 2 * self._half) or size <= 2 * self._half * _UNTRIMMED

    def finish(self) -> None:
        """Join head and tail, if the middle is gone, and close the file."""
        try:
            size = os.fstat(self._fd).st_size
            self.disk_full = _is_full(self._fd)
            if size > 2 * self._half:
                self._join(size)
        finally:
            os.close(self._fd)

    def _join(self, size: int) -> None:
        tail = self._line_after(size - self._half)
        head = self._line_before(self._half)
        self.left_out_bytes = tail - head
        told = f"[trace-analyze: {self.left_out_bytes} bytes of this output are left out here]\n".encode()
        with open(self.path, "r+b", buffering=0) as file:  # noqa: PTH123 (not in append mode, as ours)
            try:
                at = self._moved(file.fileno(), told, head, tail, size)
            except OSError:  # somebody else has taken the room: the head is whole
                at, self.left_out_bytes = head, size - head
            file.truncate(at)

    def _moved(self, fd: int, told: bytes, head: int, tail: int, size: int) -> int:
        """Bring the tail behind the head; gives where it ends."""
        at = head + os.pwrite(fd, told, head)
        while tail < size:
            data = os.pread(fd, _CHUNK_BYTES, tail)
            at += os.pwrite(fd, data, at)
            _punch(fd, tail, len(data))  # the disk may have no room for a second copy
            tail += len(data)
        return at

    def _line_before(self, place: int) -> int:
        first = max(0, place - _LINE_BYTES)
        found = os.pread(self._fd, place - first, first).rfind(b"\n")
        return first + found + 1 if found >= 0 else place

    def _line_after(self, place: int) -> int:
        found = os.pread(self._fd, _LINE_BYTES, place).find(b"\n")
        return place + found + 1 if found >= 0 else place


def _is_full(fd: int) -> bool:
    told = os.fstatvfs(fd)
    return told.f_bavail * told.f_frsize < _FULL_BYTES


def _punch(fd: int, first: int, size: int) -> bool:
    """Make a hole in a file. Its size stays."""
    libc = ctypes.CDLL(None, use_errno=True)
    done: int = libc.fallocate(
        ctypes.c_int(fd), ctypes.c_int(_KEEP_SIZE_PUNCH_HOLE), ctypes.c_int64(first), ctypes.c_int64(size)
    )
    return done == 0

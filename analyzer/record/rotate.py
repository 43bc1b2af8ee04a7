"""The file that a recording goes to: plain or zstd, rotated by size, whole up to the last flush after a kill.

Plain bytes are in the page cache as soon as ``write`` returns: they outlive this process. A zstd stream is
cut into blocks by ``flush``; after a kill, everything up to the last flush can be decompressed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import zstandard

from analyzer.errors import UsageError
from analyzer.record.losses import Losses

_UNITS = {"": 1, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}
LEAST_BYTES = 64_000  # below this a file is hardly more than its header
_IN_USE = "-o {path}: another recording is writing this log; give another name"
_HEAD_BYTES = 4096
_FIRST = b"[RECORD] START "
ZSTD_LEVEL = 1  # four times the speed of the default level on logs, nine tenths of its ratio


class LogFile:
    """Writes a log; the older files are ``serve.log.1`` (newest) to ``serve.log.<keep>``.

    A file of that name that is there already becomes ``.1``: it may be the log of the last crash.
    When the disk is full or the folder is removed, the recorded program must not die of it: what cannot be
    written is noted in ``losses`` instead.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int | None,
        keep: int,
        header: Callable[[int], bytes],
        losses: Losses | None = None,
    ) -> None:
        """Open the file.

        Args:
            path: Ends in ``.zst`` = compressed.
            max_bytes: Size on disk at which the next line begins a new file; null = one file.
            keep: Older files that stay.
            header: Lines for the top of each file, by the number of the file in this recording (from 0).
            losses: Told what cannot be written; null = it is only counted.

        Raises:
            OSError: The file cannot be made.
            UsageError: Another recording is writing it.
        """
        self.path = path
        self.losses = losses or Losses(lambda _text: None)
        self.files = 0
        self._max_bytes = max_bytes
        self._keep = keep
        self._header = header
        self._torn = self._stopped = self._dirty = False
        self._size = self._gone_bytes = 0  # the latter: of a removed file, what is counted as lost
        self._zstd: zstandard.ZstdCompressionObj | None = None
        check_not_recorded(path)
        if path.exists() and path.stat().st_size:
            self._shift()
        self._open()

    @property
    def lost_bytes(self) -> int:
        """Bytes that could not be written."""
        return self.losses.lost_bytes

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
        _close(self._fd)

    def check_place(self) -> None:
        """Begin a new file where the log was removed under us: what is written to a removed one is lost.

        A log that was moved is written on where it is now.
        """
        here = os.fstat(self._fd)
        if not stat.S_ISREG(here.st_mode) or here.st_nlink:
            return
        gone, self._gone_bytes = self._size - self._gone_bytes, self._size
        self.losses.note(f"{self.path}: was removed while it was written", gone)
        self._begin_again()

    def _begin_again(self) -> None:
        """A new file in place of the open one, which stays open if none can be made."""
        before = self._fd
        try:
            if self.path.exists() and self.path.stat().st_size:
                self._shift()
            self._open()
        except (OSError, UsageError) as error:
            told = error.strerror if isinstance(error, OSError) else None
            self.losses.note(f"{self.path}: cannot be made anew: {told or error}")
        else:
            _close(before)

    def _put(self, data: bytes) -> None:
        if self._zstd is None:
            self._out(data)
            return
        self._dirty = True
        self._out(self._zstd.compress(data))

    def _out(self, data: bytes) -> None:
        if self._stopped:
            self.losses.lost_bytes += len(data)
            return
        view = memoryview(b"\n" + data if self._torn and data else data)
        try:
            while view:
                written = os.write(self._fd, view)
                self._size += written
                view = view[written:]
            self._torn = False
        except OSError as error:  # no space, quota, stale network file system
            self.losses.note(f"{self.path}: cannot be written: {error.strerror or error}", len(view))
            self._torn = True
            self._stopped = self._zstd is not None  # nothing after a gap in a zstd stream can be read

    def _rotate(self) -> None:
        self.check_place()
        if self._zstd is not None:
            self._out(self._zstd.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH))
            self._zstd = _compressor(self.path)  # goes on in this file if no other can be made
        self._size = self._gone_bytes = 0
        self._begin_again()

    def _shift(self) -> None:
        """Move the files on by one. The last falls out, unless it is no recording: that one is kept."""
        last = numbered(self.path, self._keep) if self._keep else self.path
        if last.is_file() and not is_recording(last):
            number = self._keep + 1
            while os.path.lexists(numbered(self.path, number)):
                number += 1
            last.replace(numbered(self.path, number))
        for number in range(self._keep, 0, -1):
            older = self.path if number == 1 else numbered(self.path, number - 1)
            with contextlib.suppress(FileNotFoundError):
                older.replace(numbered(self.path, number))

    def _open(self) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            if not _lock(fd) and not self.files:  # one that began in the same moment
                os.close(fd)
                raise UsageError(_IN_USE.format(path=self.path))
            os.ftruncate(fd, 0)
        self._fd = fd
        self._zstd = _compressor(self.path)
        self._torn = self._stopped = False
        self._size = self._gone_bytes = 0
        self._put(self._header(self.files))
        self.flush()
        self._header_size = self._size
        self.files += 1


def _compressor(path: Path) -> zstandard.ZstdCompressionObj | None:
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj() if path.suffix == ".zst" else None


def _close(fd: int) -> None:
    """Bring a file to the disk itself and close it."""
    with contextlib.suppress(OSError):  # a pipe or /dev/null has no disk; a full one has said so before
        os.fdatasync(fd)
    with contextlib.suppress(OSError):
        os.close(fd)


def _lock(handle: int) -> bool:
    """Mark a log as being written, as long as this process lives. False = another one has marked it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def check_not_recorded(path: Path) -> None:
    """Refuse a log that another recording is writing: it would be moved away under it.

    Raises:
        UsageError: There is one.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        if not _lock(file.fileno()):
            raise UsageError(_IN_USE.format(path=path))


def is_recording(path: Path) -> bool:
    """Whether ``record`` wrote a file, by its first line; an empty one holds nothing to lose."""
    with path.open("rb") as file:
        head: bytes = file.read(_HEAD_BYTES)
    if path.suffix == ".zst" and head:
        try:
            head = zstandard.ZstdDecompressor().decompressobj().decompress(head)
        except zstandard.ZstdError:
            return False
    return not head or _FIRST in head.partition(b"\n")[0]


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

"""Moves the bytes of a command: pipes in, stamped log and our own streams out.

Large reads, one stamp a read. The log is written before the terminal: evidence first. When the command has
ended, a process that it left behind may hold the pipes; it gets ``GRACE_S``, then we go.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import selectors
import subprocess
import termios
import time
from typing import Protocol

from analyzer.record.rotate import LogFile
from analyzer.record.stamp import Clock, Stamper, Stream

READ_BYTES = 256 << 10  # a read of empty lines grows fifty-fold when stamped: 13 MB
# What the command may write ahead while we do not get the processor; an ordinary user may have 1 MB.
PIPE_BYTES = (8 << 20, 1 << 20)
FLUSH_S = 0.2  # what a kill of the recorder can lose from a zstd stream
UNFINISHED_S = 1.0  # an unfinished line is written as a part after this
CHECK_S = 1.0  # how often it is looked whether the log is still where it was
GRACE_S = 2.0  # for what the command's own children still write after it has ended
_EXIT = "exit"


class Inserter(Protocol):
    """Puts lines of its own in front of text that reports a fault (the ring of ops)."""

    def cut(self, data: bytes) -> int | None:
        """Where in ``data`` the line begins that wants them before it; null = nowhere."""

    def lines(self) -> bytes:
        """Stamped lines to put in."""


class Outlet:
    """One of our own streams; once its reader is gone, the recording goes on without it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._open = True

    def write(self, data: bytes) -> None:
        """Pass the bytes on unchanged, waiting for a slow reader."""
        view = memoryview(data)
        while view and self._open:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                with selectors.DefaultSelector() as waiting:
                    waiting.register(self._fd, selectors.EVENT_WRITE)
                    waiting.select()
            except OSError:  # the terminal hung up, the pipe closed, the disk of `> file` is full
                self._open = False


class _Channel:
    """A pipe of the command with its stamper and its outlet."""

    def __init__(self, stream: Stream, fd: int, outlet: int) -> None:
        self.fd = fd
        self.stamper = Stamper(stream)
        self.outlet = Outlet(outlet)
        self.unterminated = False
        self.waiting_since_s: float | None = None
        self.owed_bytes = 0
        _widen(fd)

    def note_end(self) -> None:
        """What the command itself left in the pipe is owed to it, whatever the grace says."""
        size = array.array("i", [0])
        with contextlib.suppress(OSError):  # closed by the command long ago
            fcntl.ioctl(self.fd, termios.FIONREAD, size)
        self.owed_bytes = size[0]

    def note_rest(self, data: bytes) -> None:
        """Remember since when the present unfinished line waits."""
        if not self.stamper.has_rest:
            self.waiting_since_s = None
        elif self.waiting_since_s is None or b"\n" in data:
            self.waiting_since_s = time.monotonic()


def _widen(fd: int) -> None:
    """Make a pipe as large as we may; where the user's pipe pages are used up, a small one works as well."""
    for size in PIPE_BYTES:
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, size)
            return


class Relay:
    """Runs until both pipes are at their end, or the grace after the command's end is over."""

    def __init__(
        self, child: subprocess.Popen[bytes], log: LogFile, clock: Clock, inserter: Inserter | None = None
    ) -> None:
        assert child.stdout is not None
        assert child.stderr is not None
        self._child = child
        self._log = log
        self._clock = clock
        self._inserter = inserter
        self._channels = {
            "stdout": _Channel("stdout", child.stdout.fileno(), 1),
            "stderr": _Channel("stderr", child.stderr.fileno(), 2),
        }
        self._ended_s: float | None = None
        self._flushed_s = self._checked_s = time.monotonic()
        self.payload_bytes = 0

    def run(self) -> tuple[list[str], list[str]]:
        """Relay everything.

        Returns:
            Names of the streams that ended inside a line, and of those that somebody still holds open.
        """
        pidfd = os.pidfd_open(self._child.pid)
        with selectors.DefaultSelector() as selector:
            for name, channel in self._channels.items():
                selector.register(channel.fd, selectors.EVENT_READ, name)
            selector.register(pidfd, selectors.EVENT_READ, _EXIT)
            try:
                self._loop(selector)
            finally:
                os.close(pidfd)
            held = [key.data for key in selector.get_map().values() if key.data != _EXIT]
        now_ns = self._clock.now_ns()
        for name, channel in self._channels.items():
            if name in held:
                self._finish(channel, now_ns)
        self._log.check_place()
        self._log.flush()
        return [name for name, one in self._channels.items() if one.unterminated], held

    def _loop(self, selector: selectors.BaseSelector) -> None:
        while any(key.data != _EXIT for key in selector.get_map().values()):
            events = selector.select(self._timeout_s())
            for key, _ in events:
                if key.data == _EXIT:
                    selector.unregister(key.fileobj)
                    self._ended_s = time.monotonic()
                    for channel in self._channels.values():
                        channel.note_end()
                elif not self._pump(self._channels[key.data]):
                    selector.unregister(key.fileobj)
            self._flush(quiet=not events)
            if self._is_over(quiet=not events):
                return

    def _timeout_s(self) -> float:
        waits = [CHECK_S]
        if self._log.dirty:
            waits.append(FLUSH_S)
        if any(channel.stamper.has_rest for channel in self._channels.values()):
            waits.append(UNFINISHED_S)
        if self._ended_s is not None:
            waits.append(max(0.0, self._ended_s + GRACE_S - time.monotonic()))
        return min(waits)

    def _is_over(self, *, quiet: bool) -> bool:
        if self._ended_s is None or time.monotonic() < self._ended_s + GRACE_S:
            return False
        return quiet or all(channel.owed_bytes <= 0 for channel in self._channels.values())

    def _pump(self, channel: _Channel) -> bool:
        """One read; false at the end of the stream."""
        data = os.read(channel.fd, READ_BYTES)
        now_ns = self._clock.now_ns()
        if not data:
            channel.owed_bytes = 0
            self._finish(channel, now_ns)
            return False
        self.payload_bytes += len(data)
        channel.owed_bytes -= len(data)
        at = self._insert_at(data)
        if at:
            self._log.write(channel.stamper.feed(data[:at], now_ns))
        if at is not None and self._inserter is not None:
            self._log.write(self._inserter.lines())
        self._log.write(channel.stamper.feed(data[at:] if at else data, now_ns))
        channel.note_rest(data)
        channel.outlet.write(data)
        return True

    def _insert_at(self, data: bytes) -> int | None:
        """Where the inserter's lines go; never between the parts of a line, which readers join."""
        if self._inserter is None or any(one.stamper.in_parts for one in self._channels.values()):
            return None
        return self._inserter.cut(data)

    def _finish(self, channel: _Channel, now_ns: int) -> None:
        rest, channel.unterminated = channel.stamper.finish(now_ns)
        self._log.write(rest)

    def _flush(self, *, quiet: bool) -> None:
        """End the zstd block when there is time or it is time; write unfinished lines that have waited."""
        now_s = time.monotonic()
        for channel in self._channels.values():
            since_s = channel.waiting_since_s
            if since_s is not None and now_s - since_s >= UNFINISHED_S:
                self._log.write(channel.stamper.flush(self._clock.now_ns()))
                channel.waiting_since_s = None
        if now_s - self._checked_s >= CHECK_S:
            self._log.check_place()
            self._checked_s = now_s
        if self._log.dirty and (quiet or now_s - self._flushed_s >= FLUSH_S):
            self._log.flush()
            self._flushed_s = now_s

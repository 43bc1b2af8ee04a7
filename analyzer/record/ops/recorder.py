"""Notes ops of one process: numbers them, finds their texts, hands them to the ring or the log file.

Knows nothing of how a launch was met (dispatch mode, Triton hook, CUDA graph). Runs in the recorded program.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

from analyzer.record.ops.frames import Stacks
from analyzer.record.ops.marks import DeviceMarks
from analyzer.record.ops.ring import Ring
from analyzer.record.ops.settings import INPUT_BYTES, RING_SUFFIX, TEXT_BYTES, step_mark
from analyzer.record.ops.values import copy_values
from analyzer.record.ops.writers import Writers


class Sink(Protocol):
    """Where ops go. Both calls return after the kernel of the operating system has the bytes."""

    def launch(self, ident: int, op: bytes, frames: bytes, inputs: bytes | None, step: int = 0) -> None:
        """Before the launch."""

    def returned(self, ident: int) -> None:
        """After the call returned."""

    def close(self) -> None:
        """No op comes any more."""


class LogSink:
    """Writes every record in full, at once: for programs whose whole history is wanted."""

    def __init__(self, path: str, inputs: str, *, stamps: bool = False) -> None:
        """Open the log; a file there is replaced.

        Raises:
            OSError: It cannot be made.
        """
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._inputs = Path(inputs)
        self._stamps = stamps
        self._open: dict[int, bytes] = {}
        self._step = 0

    def launch(self, ident: int, op: bytes, frames: bytes, inputs: bytes | None, step: int = 0) -> None:
        """Write the launch record, the inputs beside the log, and a mark where a step begins."""
        if step != self._step:
            self._step = step
            self._write(step_mark(step))
        name, _, detail = op.partition(b"\n")
        target = detail.removeprefix(b";target=").partition(b";")[0]
        if inputs is not None:
            from analyzer.record.ops.inputs import evidence, file_name

            detail += evidence(inputs).encode()
            self._inputs.mkdir(parents=True, exist_ok=True)
            (self._inputs / file_name(ident)).write_bytes(inputs)
        head = b"[OP] LAUNCH %b [id=%d] " % (name, ident)
        body = b"\n%b\n%b" % (frames, detail) if frames else detail[1:]
        self._open[ident] = b"[OP] COMPLETE %b [id=%d] target=%b" % (name, ident, target)
        self._write(head + body)

    def returned(self, ident: int) -> None:
        """Write the completion record."""
        self._write(self._open.pop(ident, b""))

    def close(self) -> None:
        """Close the log."""
        os.close(self._fd)

    def _write(self, record: bytes) -> None:
        if self._stamps:
            seconds, fraction = divmod(time.time_ns(), 1_000_000_000)
            day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
            stamp = f"{day}.{fraction:09d}Z stderr F ".encode()
            record = stamp + record.replace(b"\n", b"\n" + stamp)
        os.write(self._fd, record + b"\n")  # one call: records of threads do not mix


class Recorder:
    """All ops of this process. After a fork the child begins a ring of its own.

    ``returned``, called with an op's id, notes that its call returned.
    """

    def __init__(self, sink: Sink) -> None:
        self.capture: str | None = None  # name of the CUDA graph that is being captured
        self._marks: DeviceMarks | None = None
        self.writers = Writers()
        self._stack = Stacks().text
        self.replace_sink(sink)

    def launch(self, op: bytes, inputs: bytes | None = None, depth: int = 1) -> int:
        """Note an op before it is launched.

        Args:
            op: ``signature.Operands.text``.
            inputs: ``inputs.pack_inputs``, or null.
            depth: Frames between this call and the innermost one of interest.

        Returns:
            Its id, for ``returned``.
        """
        ident = next(self._ids)
        if self.capture is not None:
            op += b";capture=" + self.capture.encode()
        frames = self._stack(sys._getframe(depth))  # noqa: SLF001 - the documented way to the caller
        self._note(ident, op, frames, inputs, self.step)
        return ident

    def replace_sink(self, sink: Sink) -> None:
        """Go on elsewhere, from id 0."""
        self.step = 0  # calls of the outermost module so far (steps.py)
        self._sink = sink
        self._note = sink.launch
        self.returned = sink.returned
        self._ids = itertools.count()  # next() is atomic: threads share it
        self.writers.forget()
        if isinstance(sink, Ring):
            self._ring, self._marks = sink, DeviceMarks(sink.path)
        else:
            self._marks = None

    def mark(self, ident: int, device: int) -> None:
        """Have the device tell when it has finished an op that was just launched on it."""
        if self._marks is not None:
            mark = self._marks.mark(device, self.capture)
            if mark:
                self._ring.marked(ident, mark)

    def copy(self, tensor: Any) -> str | None:
        """Have the device keep the values of a tensor as they are now; null = it cannot."""
        if self._marks is None or not getattr(tensor, "is_cuda", False):
            return None
        try:
            found = copy_values(self._marks, tensor, self.capture)
        except (RuntimeError, TypeError, ValueError, AttributeError):  # it refuses, or the context is lost
            return None
        return None if found is None else found.text()

    def close(self) -> None:
        """Close the sink."""
        if self._marks is not None:
            self._marks.close()
        self._sink.close()


class Nowhere:
    """Takes ops and keeps none: there is no room for a ring, and the program goes on."""

    def launch(self, ident: int, op: bytes, frames: bytes, inputs: bytes | None, step: int = 0) -> None:
        """Not kept."""

    def returned(self, ident: int) -> None:
        """Not kept."""

    def close(self) -> None:
        """There is nothing to close."""


def ring_or_nowhere(folder: str, slots: int) -> Sink:
    """The ring of a process that was forked; where none can be made it is said once."""
    try:
        return ring_for_process(folder, slots)
    except OSError as error:
        told = f"trace-analyze record: no op log of process {os.getpid()}: {error.strerror or error}\n"
        with contextlib.suppress(OSError):
            os.write(2, told.encode())
        return Nowhere()


def ring_for_process(folder: str, slots: int) -> Ring:
    """A ring named after this process, in ``folder``."""
    return Ring(str(Path(folder) / f"{os.getpid()}{RING_SUFFIX}"), slots, TEXT_BYTES, INPUT_BYTES)

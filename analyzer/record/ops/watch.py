"""The recorder's side of the PyTorch op log: rings of all processes of the command, rendered into its log.

Ops are put in front of the first text that reports a fault, because a reader of the log takes what stands
before a report for what ran before it. Their stamps are the times of the launches, so these go back; each
block begins with a ``[RECORD] OPS`` line.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

import msgspec

from analyzer.errors import InputError
from analyzer.record.losses import Losses
from analyzer.record.ops.dump import RingDump, RingOp, read_ring, render_events, render_marks, save_inputs
from analyzer.record.ops.marks_file import remove_marks
from analyzer.record.ops.settings import RING_SUFFIX
from analyzer.record.rotate import numbered
from analyzer.record.stamp import Stream, cri_time, stamp_lines
from analyzer.record.trailer import render_line

# Texts that report a fault: of Python, the CUDA and HIP runtimes, device asserts, the C library.
_HARD = (
    b"CUDA error", b"CUDA_ERROR_", b"HIP error", b"Assertion `", b"Fatal Python error", b"terminate called",
    b" coredump: ", b"Memory access fault",
)  # fmt: skip
_SOFT = b"Traceback (most recent call last)"  # servers log some for every bad request
SOFT_PAUSE_S = 1.0
_STREAM: Stream = "stderr"


class _Seen(msgspec.Struct):
    """What of a ring is in the log: ops below ``next_id``, the last ``step``, ops without a completion yet.

    The ops of the first process that has any stand in the log like its own text, without a tag.
    """

    tag: str
    next_id: int = 0
    step: int = 0
    open_ids: set[int] = msgspec.field(default_factory=set)


class OpsWatch:
    """Looks after the folder of rings of one recording."""

    def __init__(self, folder: Path, inputs: Path, losses: Losses | None = None) -> None:
        self._folder = folder
        self._inputs = inputs
        self._losses = losses or Losses(lambda _text: None)
        self._seen: dict[Path, _Seen] = {}
        self._soft_s = 0.0
        self._started = False

    def prepare(self) -> None:
        """Make an empty folder; what earlier recordings left is moved aside, and nothing of it is removed.

        Rings that a killed recorder left go to ``<folder>.old``, or ``.old.2`` ... where that is taken.

        Raises:
            OSError: It cannot be made.
        """
        if self._folder.exists():  # that recorder was killed: nobody has read these rings yet
            self._folder.replace(_free(self._folder.with_name(self._folder.name + ".old")))
        log = self._inputs.with_name(self._inputs.name.removesuffix(".inputs"))
        before = log.with_name(numbered(log, 1).name + ".inputs")
        if self._inputs.exists():  # of the recording before: its log was moved aside as well
            if before.exists():
                before.replace(_free(before))
            self._inputs.replace(before)
        self._folder.mkdir(parents=True)

    def clear(self) -> None:
        """Remove the rings and their marks; what was worth keeping is in the log."""
        for ring in self._folder.glob(f"*{RING_SUFFIX}"):
            remove_marks(ring)
        shutil.rmtree(self._folder, ignore_errors=True)

    def cut(self, data: bytes) -> int | None:
        """Start of the first line of ``data`` that reports a fault; null = none, or no ops to show."""
        if not self._has_rings():
            return None
        found = [at for text in _HARD if (at := data.find(text)) >= 0]
        soft = data.find(_SOFT)
        now_s = time.monotonic()
        if soft >= 0 and (found or now_s - self._soft_s >= SOFT_PAUSE_S):
            found.append(soft)
            self._soft_s = now_s
        if not found:
            return None
        return data.rfind(b"\n", 0, min(found)) + 1

    def _has_rings(self) -> bool:
        if not self._started:
            with contextlib.suppress(OSError):  # somebody cleaned up: no ops then
                self._started = any(one.suffix == RING_SUFFIX for one in self._folder.iterdir())
        return self._started

    def lines(self) -> bytes:
        """Ops of all rings that are not in the log yet, stamped, in order of time within a process."""
        dumps = []
        for path in self._folder.glob(f"*{RING_SUFFIX}"):
            with contextlib.suppress(InputError, OSError):  # killed while it made the file, or just removed
                dumps.append((path, read_ring(path)))
        dumps.sort(key=lambda one: one[1].started_ns)
        return b"".join(self._block(path, dump) for path, dump in dumps if dump.ops)

    def _block(self, path: Path, dump: RingDump) -> bytes:
        tag = f"(python pid={dump.pid}) " if self._seen else ""
        seen = self._seen.setdefault(path, _Seen(tag=tag))
        new = [op for op in dump.ops if op.id >= seen.next_id]
        late = [op for op in dump.ops if op.id in seen.open_ids and op.done_ns is not None]
        if not new and not late:
            return b""
        lost = new[0].id - seen.next_id if new else 0
        step = seen.step
        self._note(seen, new, late)
        try:
            save_inputs(new, self._inputs, prefix=f"{dump.pid}-")
        except OSError as error:  # the recording goes on; a replay will have no values for these ops
            self._losses.note(f"{self._inputs}: inputs of ops cannot be saved: {error.strerror or error}")
        head = render_line("OPS", {"pid": dump.pid, "ops": len(new), "lost": lost})
        out = [stamp_lines(f"{head}\n".encode(), time.time_ns(), _STREAM)]
        for time_ns, text in render_events(new, late, step):
            stamp = cri_time(time_ns) + b" stderr F " + seen.tag.encode()
            out.append(stamp + text.replace(b"\n", b"\n" + stamp) + b"\n")
        marks = "".join(f"{seen.tag}{line}\n" for line in render_marks(dump))
        out.append(stamp_lines(marks.encode(), time.time_ns(), _STREAM))
        return b"".join(out)

    @staticmethod
    def _note(seen: _Seen, new: list[RingOp], late: list[RingOp]) -> None:
        if new:
            seen.next_id = new[-1].id + 1
            seen.step = max(seen.step, *(op.step for op in new))
        seen.open_ids.difference_update(op.id for op in late)
        seen.open_ids.update(op.id for op in new if op.done_ns is None)


def _free(path: Path) -> Path:
    """The path, or the first of ``<path>.2``, ``<path>.3`` ... that nothing lies at."""
    free, count = path, 1
    while os.path.lexists(free):
        count += 1
        free = path.with_name(f"{path.name}.{count}")
    return free

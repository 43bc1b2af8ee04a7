"""The writing end of the journal: one JSON line an event, handed to the kernel before the launch."""

from __future__ import annotations

import json
import mmap
import os
import time

BEGUN, FINISHED, STEP, FIELDS = 0, 1, 2, 3  # places in the progress file
_WORD = 8  # bytes of one place


class JournalWriter:
    """Appends events to a file. Several processes may write the same file: each line is one write.

    ``os.write`` to a file opened with ``O_APPEND`` survives the death of the process right after it; nothing
    is buffered here.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, event: str, **facts: object) -> None:
        """Write one event with its facts; null facts are left out."""
        entry: dict[str, object] = {"event": event, "pid": os.getpid(), "time_ns": time.monotonic_ns()}
        entry.update((name, value) for name, value in facts.items() if value is not None)
        os.write(self._file, (json.dumps(entry, default=str) + "\n").encode("utf-8", "replace"))

    def op(self, number: int, name: str, **facts: object) -> None:
        """Write that an op is about to be launched."""
        self.write("op", number=number, name=name, **facts)

    def done(self, number: int, **facts: object) -> None:
        """Write that the device has finished the op."""
        self.write("done", number=number, **facts)

    def failed(self, number: int, name: str, error: BaseException, **facts: object) -> None:
        """Write that the op, or the synchronisation after it, raised."""
        kind = type(error)
        text = str(error)[:4000]  # the head of the text says it; PyTorch appends C++ stacks
        self.write("failed", number=number, name=name, error_type=kind.__qualname__, error=text, **facts)


def open_progress(path: str) -> memoryview:
    """A shared counter file ``path.PID.progress``: what a dead process had counted can still be read.

    A store into mapped memory costs some ten nanoseconds, so that also ops outside the window are counted.
    """
    name = f"{path}.{os.getpid()}.progress"
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.write(file, bytes(FIELDS * _WORD))  # not a hole: on a full disk a store into one kills the program
    view = memoryview(mmap.mmap(file, FIELDS * _WORD)).cast("q")
    os.close(file)
    view[STEP] = -1
    return view

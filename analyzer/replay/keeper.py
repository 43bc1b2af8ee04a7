"""A process beside a child that ends it when *we* are gone: also when SIGKILL or the kernel ended us.

It reads from a pipe whose other end only we hold, and does nothing until that is closed. What it imports is
the standard library: it starts in a few milliseconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from analyzer.replay.processes import ProcessTree

_GRACE_S = 0.5
_START = "import sys; sys.path.insert(0, sys.argv[1]); from analyzer.replay.keeper import main; main()"


class Keeper:
    """Looks after the processes with a marker in their environment for as long as the block lasts."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        root = str(Path(__file__).resolve().parents[2])
        command = [sys.executable, "-I", "-S", "-c", _START, root, self._marker]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=null, stderr=null, start_new_session=True, bufsize=0
        )
        return self

    def look_after(self, pid: int) -> None:
        """The child; what comes from it is told by the marker, its session and its parents."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(f"{pid}\n".encode())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        """All is dead that it looked after."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()


def main() -> None:
    """Wait for the end of the pipe, then end the tree."""
    text = b""
    while data := os.read(0, 64):
        text += data
    root = int(text) if text.strip().isdigit() else 0
    ProcessTree(root, sys.argv[2]).kill(_GRACE_S)

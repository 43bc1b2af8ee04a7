"""Real children that end in every way, and what must be true after each."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analyzer.replay.processes import all_processes
from analyzer.replay.supervisor import ChildOutcome, run_child

MARK = f"test-run-{os.getpid()}"  # other attempts may run on the machine at the same time
HEALTHY = "print('fine')"
RAISES = "raise ValueError('broken')"
EXITS_3 = "import sys; sys.exit(3)"
SEGFAULTS = "import ctypes; ctypes.string_at(0)"
ABORTS = "import os; os.abort()"
EATS_MEMORY = "held = []\nwhile True: held.append(bytearray(b'x' * (16 << 20)))"
HANGS = "import time\nwhile True: time.sleep(60)"
HANGS_STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{HANGS}"
GRANDCHILD = textwrap.dedent(
    """
    import subprocess, sys, time
    code = 'import os, time; from signal import *; os.setsid(); signal(SIGTERM, SIG_IGN); time.sleep(600)'
    subprocess.Popen([sys.executable, '-c', code])
    time.sleep(600)
    """
)
ORPHAN = textwrap.dedent(
    """
    import os, subprocess, sys, time
    code = 'import os, time; os.setsid(); os.fork() and os._exit(0); os.setsid(); time.sleep(600)'
    subprocess.Popen([sys.executable, '-c', code, os.environ['TEST_RUN']], env={}).wait()
    time.sleep(0.2)
    """
)


def python(code: str) -> list[str]:
    """The command that runs some code in this interpreter."""
    return [sys.executable, "-c", code]


def run(command: Sequence[str], folder: Path, **settings: Any) -> ChildOutcome:
    """Run a command with a short deadline."""
    return run_child(
        command,
        env={**os.environ, "TEST_RUN": MARK, **settings.pop("env", {})},
        journal=folder / "journal",
        output=folder / "output",
        **{"deadline_s": 20.0, "grace_s": 0.2, **settings},
    )


_BEFORE: set[int] = set()


def note_children() -> None:
    """What other tests of this worker have started is not left behind by the one that begins now."""
    _BEFORE.clear()
    _BEFORE.update(process.pid for process in all_processes() if process.parent == os.getpid())


def left_behind() -> list[str]:
    """Processes with our mark in environment or arguments, and children of ours, dead ones too; in words."""
    found = []
    for process in all_processes():
        texts = b""
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                texts += Path(f"/proc/{process.pid}/{name}").read_bytes()
        ours = process.parent == os.getpid() and process.pid not in _BEFORE
        if MARK.encode() in texts or ours:
            found.append(f"{process} {texts[-300:]!r}")
    return found

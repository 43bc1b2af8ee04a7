"""One attempt: a fresh child in a session of its own, with a deadline, and nothing left of it afterwards.

The parent imports neither torch nor max and never initialises a device: a fault cannot reach it, and the next
child starts with a clean context.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from analyzer.replay.journal import Journal, ends_with_stop, read_journal
from analyzer.replay.keeper import Keeper
from analyzer.replay.memory import SHARE, held_bytes, told_size
from analyzer.replay.output_file import LIMIT_BYTES, OutputFile
from analyzer.replay.processes import ProcessTree, adopting_orphans
from analyzer.schema import Value
from analyzer.scratch import ENDING_SIGNALS

GRACE_S = 0.5  # from SIGTERM to SIGKILL; with it a hang is dead within a second of its deadline
MARKER_VARIABLE = "TRACE_ANALYZE_ATTEMPT"  # in the environment of every process of an attempt
ENDED_BY_US = "ended by trace-analyze"
DISK_FULL = "the disk is full:"
MEMORY_WHY = f"{SHARE:.0%} of what was free, or --memory-limit"
_TICK_S = 0.05

Reason = Literal["deadline", "memory", "output", "interrupted", "stopped"]


class ChildOutcome(Value):
    """How a child ended.

    ``exit_code`` is null if a signal ended it or it could not be started, ``signal`` is null otherwise.
    ``killed_for``: why we ended it; null = it ended by itself. ``stopped``: the hook ended the run.
    ``start_error``: why it could not be started. ``left_over``: pids that could not be killed.
    ``limits_told``: what our limits did to it.
    """

    command: list[str]
    output: Path
    duration_s: float
    journal: Journal
    exit_code: int | None = None
    signal: int | None = None
    killed_for: Reason | None = None
    stopped: bool = False
    start_error: str | None = None
    left_over: tuple[int, ...] = ()
    limits_told: tuple[str, ...] = ()

    @property
    def timed_out(self) -> bool:
        """The deadline passed."""
        return self.killed_for == "deadline"

    @property
    def disk_full(self) -> bool:
        """Journal and output are not whole: nothing that it did can be told."""
        return any(told.startswith(DISK_FULL) for told in self.limits_told)

    @property
    def interrupted(self) -> bool:
        """Ctrl-C, or a signal that asks the parent to end."""
        return self.killed_for == "interrupted"


def run_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    deadline_s: float,
    journal: Path,
    output: Path,
    grace_s: float = GRACE_S,
    memory_limit_bytes: int | None = None,
    output_limit_bytes: int = LIMIT_BYTES,
    cwd: Path | None = None,
) -> ChildOutcome:
    """Run a command to its end or its limits, then kill every process that came from it.

    Ctrl-C, SIGTERM and SIGHUP raise nothing: the child is killed and the outcome says ``interrupted``, so
    that what was found before is kept. If we are killed ourselves, a process beside us ends the child.

    Args:
        command: Program and arguments; never a shell line.
        env: The whole environment.
        deadline_s: Seconds from the start.
        journal: Where the child writes; an old one is removed.
        output: Gets standard output and error together, straight from the child.
        grace_s: Seconds from ``SIGTERM`` to ``SIGKILL``.
        memory_limit_bytes: Memory that all processes together may hold (``memory.py``); null = any.
        output_limit_bytes: Size of ``output``; of more, head and tail are kept.
        cwd: Working directory; null = ours.
    """
    for stale in (journal, *journal.parent.glob(f"{journal.name}.*.progress")):
        stale.unlink(missing_ok=True)
    mark = f"{MARKER_VARIABLE}={uuid.uuid4().hex}"
    began = time.monotonic()
    sink = OutputFile(output, output_limit_bytes)
    limits = _Limits(end=began + deadline_s, journal=journal, memory_bytes=memory_limit_bytes, sink=sink)
    with _asked_to_end() as asked, adopting_orphans():
        try:
            with Keeper(mark) as keeper:
                child = _start(command, env, mark, sink, cwd)
                keeper.look_after(child.pid)
                ending = _supervise(child, ProcessTree(child.pid, mark), limits, asked, grace_s)
        except OSError as error:
            return _not_started(command, output, str(error))
        finally:
            sink.finish()
    read = read_journal(journal)
    return ChildOutcome(
        command=list(command),
        output=output,
        duration_s=time.monotonic() - began,
        journal=read,
        exit_code=child.returncode if (child.returncode or 0) >= 0 else None,
        signal=-child.returncode if (child.returncode or 0) < 0 else None,
        killed_for="interrupted" if asked else ending.killed_for,
        stopped=any(True for _ in read.of("stopped")),
        left_over=ending.left_over,
        limits_told=tuple(_limits_told(ending, memory_limit_bytes, sink)),
    )


def _limits_told(ending: _Ending, memory_bytes: int | None, sink: OutputFile) -> Iterator[str]:
    """What our limits, or the disk, did to the attempt: nothing of it is a word of the program."""
    if ending.killed_for == "memory" and memory_bytes is not None:
        told = told_size(memory_bytes)
        yield f"{ENDED_BY_US}: its processes held more than {told} of memory ({MEMORY_WHY})"
    if ending.killed_for == "output":
        yield f"{ENDED_BY_US}: it printed more than the disk may be filled with"
    if sink.left_out_bytes:
        told = told_size(sink.left_out_bytes)
        yield f"its output is kept as head and tail: {told} between them are left out"
    if sink.disk_full:
        yield f"{DISK_FULL} {sink.path.parent}: its journal and output are not whole"


def _start(
    command: Sequence[str], env: Mapping[str, str], mark: str, sink: OutputFile, cwd: Path | None
) -> subprocess.Popen[bytes]:
    name, _, value = mark.partition("=")
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=sink.fileno(),
        stderr=subprocess.STDOUT,
        env={**env, name: value},
        start_new_session=True,
        cwd=cwd,
    )


def _not_started(command: Sequence[str], output: Path, error: str) -> ChildOutcome:
    return ChildOutcome(
        command=list(command), output=output, duration_s=0.0, journal=Journal(), start_error=error
    )


class _Ending(Value):
    """Why a child was ended, and who would not die. See ``ChildOutcome``."""

    killed_for: Reason | None
    left_over: tuple[int, ...]


class _Limits(Value):
    """When a child is to be ended. ``end``: monotonic seconds."""

    end: float
    journal: Path
    memory_bytes: int | None
    sink: OutputFile

    def exceeded(self, tree: ProcessTree) -> Reason | None:
        if time.monotonic() >= self.end:
            return "deadline"
        pids = tree.look()
        if self.memory_bytes is not None and held_bytes(pids) > self.memory_bytes:
            return "memory"
        if not self.sink.trim():
            return "output"
        return "stopped" if ends_with_stop(self.journal) else None


def _supervise(
    child: subprocess.Popen[bytes], tree: ProcessTree, limits: _Limits, asked: list[int], grace_s: float
) -> _Ending:
    """Wait for the end of the child or its limits, then kill the whole tree: parts of it may outlive it."""
    killed_for: Reason | None = None
    left_over: tuple[int, ...] = ()
    try:
        killed_for = _wait(child, tree, limits, asked)
    finally:
        left_over = tuple(tree.kill(grace_s))
        if child.pid not in left_over:
            child.wait()
    return _Ending(killed_for=killed_for, left_over=left_over)


def _wait(
    child: subprocess.Popen[bytes], tree: ProcessTree, limits: _Limits, asked: list[int]
) -> Reason | None:
    while not asked:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=max(0.0, min(_TICK_S, limits.end - time.monotonic())))
            return None
        if (reason := limits.exceeded(tree)) is not None:
            return reason
    return "interrupted"


@contextlib.contextmanager
def _asked_to_end() -> Iterator[list[int]]:
    """Signals that ask us to end are noted while a child runs: an exception could leave it half started.

    One that is ignored stays so. Only the main thread can set handlers; elsewhere the main thread's stay.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(number: int, _frame: object) -> None:
        asked.append(number)

    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    ours = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in ours:
        signal.signal(number, note)
    try:
        yield asked
    finally:
        for number, old in ours.items():
            signal.signal(number, old)

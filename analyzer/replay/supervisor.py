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
from typing import IO, Literal

from analyzer.replay.journal import Journal, ends_with_stop, read_journal
from analyzer.replay.processes import ProcessTree, adopting_orphans
from analyzer.schema import Value

GRACE_S = 0.5  # from SIGTERM to SIGKILL; with it a hang is dead within a second of its deadline
MARKER_VARIABLE = "TRACE_ANALYZE_ATTEMPT"  # in the environment of every process of an attempt
OUTPUT_LIMIT_BYTES = 16 << 30  # an op log of a long run is gigabytes; more than this is a loop that prints
_TICK_S = 0.05

Reason = Literal["deadline", "memory", "output", "interrupted", "stopped"]


class ChildOutcome(Value):
    """How a child ended.

    ``exit_code`` is null if a signal ended it or it could not be started, ``signal`` is null otherwise.
    ``killed_for``: why we ended it; null = it ended by itself. ``stopped``: the hook ended the run.
    ``start_error``: why it could not be started. ``left_over``: pids that could not be killed.
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

    @property
    def timed_out(self) -> bool:
        """The deadline passed."""
        return self.killed_for == "deadline"

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
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    cwd: Path | None = None,
) -> ChildOutcome:
    """Run a command to its end or its limits, then kill every process that came from it.

    Ctrl-C is not raised: the child is killed and the outcome says ``interrupted``, so that what was found
    before is kept. A second one during the killing is ignored.

    Args:
        command: Program and arguments; never a shell line.
        env: The whole environment.
        deadline_s: Seconds from the start.
        journal: Where the child writes; an old one is removed.
        output: Gets standard output and error together, straight from the child.
        grace_s: Seconds from ``SIGTERM`` to ``SIGKILL``.
        memory_limit_bytes: Resident memory of all processes together. The address space is not limited: CUDA
            reserves terabytes of it.
        output_limit_bytes: Size of ``output``.
        cwd: Working directory; null = ours.
    """
    for stale in (journal, *journal.parent.glob(f"{journal.name}.*.progress")):
        stale.unlink(missing_ok=True)
    mark = uuid.uuid4().hex
    began = time.monotonic()
    limits = _Limits(
        end=began + deadline_s,
        journal=journal,
        output=output,
        memory_bytes=memory_limit_bytes,
        output_bytes=output_limit_bytes,
    )
    with _signals_raise(), adopting_orphans(), output.open("wb") as sink:
        try:
            child = _start(command, {**env, MARKER_VARIABLE: mark}, sink, cwd)
        except OSError as error:
            return _not_started(command, output, str(error))
        ending = _supervise(child, ProcessTree(child.pid, f"{MARKER_VARIABLE}={mark}"), limits, grace_s)
    read = read_journal(journal)
    return ChildOutcome(
        command=list(command),
        output=output,
        duration_s=time.monotonic() - began,
        journal=read,
        exit_code=child.returncode if (child.returncode or 0) >= 0 else None,
        signal=-child.returncode if (child.returncode or 0) < 0 else None,
        killed_for=ending.killed_for,
        stopped=any(True for _ in read.of("stopped")),
        left_over=ending.left_over,
    )


def _start(
    command: Sequence[str], env: Mapping[str, str], sink: IO[bytes], cwd: Path | None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.STDOUT,
        env=env,
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
    output: Path
    memory_bytes: int | None
    output_bytes: int

    def exceeded(self, tree: ProcessTree) -> Reason | None:
        if time.monotonic() >= self.end:
            return "deadline"
        if self.memory_bytes is not None and tree.resident_bytes() > self.memory_bytes:
            return "memory"
        if self.output.stat().st_size > self.output_bytes:
            return "output"
        return "stopped" if ends_with_stop(self.journal) else None


def _supervise(child: subprocess.Popen[bytes], tree: ProcessTree, limits: _Limits, grace_s: float) -> _Ending:
    """Wait for the end of the child or its limits, then kill the whole tree: parts of it may outlive it."""
    killed_for: Reason | None = None
    left_over: tuple[int, ...] = ()
    try:
        killed_for = _wait(child, tree, limits)
    except KeyboardInterrupt:
        killed_for = "interrupted"
    finally:
        with _signals_ignored():
            left_over = tuple(tree.kill(grace_s))
            if child.pid not in left_over:
                child.wait()
    return _Ending(killed_for=killed_for, left_over=left_over)


def _wait(child: subprocess.Popen[bytes], tree: ProcessTree, limits: _Limits) -> Reason | None:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=max(0.0, min(_TICK_S, limits.end - time.monotonic())))
            return None
        tree.look()
        if (reason := limits.exceeded(tree)) is not None:
            return reason


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """``SIGTERM`` and ``SIGHUP`` end us in order, like Ctrl-C, so that no child outlives us."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    with _handlers(interrupt, signal.SIGTERM, signal.SIGHUP):
        yield


@contextlib.contextmanager
def _signals_ignored() -> Iterator[None]:
    """Killing takes less than a second and must not be left half done."""
    with _handlers(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield


@contextlib.contextmanager
def _handlers(handler: object, *numbers: signal.Signals) -> Iterator[None]:
    """Set handlers for a while. Only the main thread can; elsewhere the main thread's stay."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)

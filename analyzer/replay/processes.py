"""The processes of one attempt, found in ``/proc``: also those that left its session or lost their parent.

Imports the standard library only: the keeper runs it without the packages of this environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37  # linux/prctl.h
_POLL_S = 0.01
_GIVE_UP_S = 10.0  # a process in the driver (state D) cannot be killed until the driver lets go of it


class Process(NamedTuple):
    """One process of ``/proc``. ``started`` (clock ticks since boot) tells a reused pid apart."""

    pid: int
    parent: int
    session: int
    state: str
    started: int


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Orphans of our children become our children instead of init's, so that they can be found and reaped."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = ctypes.c_int(0)
    libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def read_process(pid: int) -> Process | None:
    """One process; null = it is gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, parent, _group, session, *rest = text[text.rindex(")") + 2 :].split()
    return Process(pid=pid, parent=int(parent), session=int(session), state=state, started=int(rest[15]))


def all_processes() -> list[Process]:
    """Every process that can be seen."""
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return [process for pid in pids if (process := read_process(pid)) is not None]


def _has_marker(pid: int, marker: bytes) -> bool:
    """Whether a process was started with the marker in its environment."""
    try:
        return marker in (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False


class ProcessTree:
    """The child and everything that came from it.

    A process belongs to it if it descends from a process of it, is in the child's session, carries the marker
    in its environment, was seen as one of these before, or is an orphan that came to us in the meantime
    (``adopting_orphans``; for this, one tree at a time in a process).
    """

    def __init__(self, root: int, marker: str) -> None:
        self.root = root
        self._marker = marker.encode()
        first = read_process(root)
        self._known = {root: first.started if first else 0}
        self._us, self._session = os.getpid(), os.getsid(0)
        self._ours_before = set(_children(self._us))

    def look(self) -> list[int]:
        """Walk down from what is known (cheap); gives the pids that exist."""
        todo, found = list(self._known), []
        while todo:
            pid = todo.pop()
            if pid != self.root and not self._is_same(pid):
                continue
            found.append(pid)
            for child in _children(pid):
                if child not in self._known and (process := read_process(child)) is not None:
                    self._known[child] = process.started
                    todo.append(child)
        return found

    def alive(self) -> list[Process]:
        """Search all of ``/proc``: the members that still run. Our own dead children are reaped."""
        processes = all_processes()
        before = -1
        while before != len(self._known):  # members found in this turn have children too
            before = len(self._known)
            for process in processes:
                if process.pid not in self._known and self._belongs(process):
                    self._known[process.pid] = process.started
        members = [process for process in processes if self._known.get(process.pid) == process.started]
        return [process for process in members if not self._is_dead(process)]

    def _is_same(self, pid: int) -> bool:
        process = read_process(pid)
        return process is not None and process.started == self._known[pid]

    def _belongs(self, process: Process) -> bool:
        return (
            process.parent in self._known
            or process.session == self.root
            or self._is_adopted(process)
            or (process.state != "Z" and _has_marker(process.pid, self._marker))
        )

    def _is_adopted(self, process: Process) -> bool:
        """A child of ours that we did not start: those share our session, unless they are another tree."""
        strange = process.parent == self._us and process.session != self._session
        return strange and process.pid not in self._ours_before

    def _is_dead(self, process: Process) -> bool:
        """A zombie runs nothing. One that is our child is taken off the table (the root: by ``Popen``)."""
        if process.state not in "ZX":
            return False
        if process.pid != self.root and process.parent == self._us:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
        return True

    def kill(self, grace_s: float) -> list[int]:
        """End all members: ``SIGTERM``, and after ``grace_s`` ``SIGKILL``; gives pids that would not die."""
        alive = self._signal_until(signal.SIGTERM, grace_s, repeat=False)
        if alive:
            alive = self._signal_until(signal.SIGKILL, _GIVE_UP_S, repeat=True)
        return [process.pid for process in alive]

    def _signal_until(self, number: signal.Signals, limit_s: float, *, repeat: bool) -> list[Process]:
        """``repeat``: signal again, also what was started meanwhile."""
        end = time.monotonic() + limit_s
        alive = self.alive()
        _send(alive, number)
        while alive and time.monotonic() < end:
            time.sleep(_POLL_S)
            alive = self.alive()
            if repeat:
                _send(alive, number)
        return alive


def _children(pid: int) -> list[int]:
    """Children of all threads of a process (``CONFIG_PROC_CHILDREN``; without it nothing is seen here)."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                found.extend(int(child) for child in (task / "children").read_text().split())
    return found


def _send(processes: list[Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)

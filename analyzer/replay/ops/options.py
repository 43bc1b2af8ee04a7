"""What the caller of an op replay can set."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from analyzer.replay.attempts import DEADLINE_S
from analyzer.replay.supervisor import GRACE_S

WORKER = ("-m", "analyzer.replay.worker")
ATTEMPTS_LIMIT = 40  # with shrinking and controls; each one is a process that imports a framework


class OpReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller can set.

    ``folder``: keeps plan, job, journal and output of each attempt. ``deadline_s``: of each attempt.
    ``python``: the interpreter that has torch or max. ``device``: where everything runs (``cpu``,
    ``cuda:0``); null = where the plan says. ``custom_extensions``: MAX kernel packages. ``user_ops``: file
    with the user's callables. ``plan_path``: the plan's own file, for the report. ``repro``: program to
    write once an op is confirmed. ``ladder``: go on when blocking does not reproduce. ``worker``: what
    follows the interpreter. ``progress``: told before each attempt.
    """

    folder: Path
    deadline_s: float = DEADLINE_S
    grace_s: float = GRACE_S
    memory_limit_bytes: int | None = None
    python: str = sys.executable
    device: str | None = None
    custom_extensions: tuple[Path, ...] = ()
    user_ops: Path | None = None
    plan_path: Path | None = None
    repro: Path | None = None
    ladder: bool = True
    attempts_limit: int = ATTEMPTS_LIMIT
    worker: tuple[str, ...] = WORKER
    progress: Callable[[str], None] | None = None

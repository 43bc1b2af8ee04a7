"""Runs the attempts of one program replay and keeps the record of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from analyzer.errors import InputError
from analyzer.pipeline import analyze
from analyzer.replay.hooks.config import HookConfig
from analyzer.replay.memory import memory_limit
from analyzer.replay.observe import Finding, observe, reached_window
from analyzer.replay.report import ReplayAttempt, Rung
from analyzer.replay.supervisor import GRACE_S, ChildOutcome, run_child
from analyzer.replay.switches import environment, switches
from analyzer.schema import Result

DEADLINE_S = 600.0
NO_WINDOW = HookConfig()


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller can set.

    ``deadline_s``: of each attempt. ``memory_limit_bytes``: of all its processes
    (``memory.py``); null = most of what is free, 0 = none.
    ``marker``: what makes a step of a PyTorch program (a call of its outermost module, or nothing).
    ``steps``: first and last step to watch closely; null = found by the first attempt. ``locate``: find the
    failing step of a MAX program without sync mode first. ``ladder``: go on when blocking does not reproduce.
    ``folder``: keeps journal and output of each attempt. ``progress``: told before each attempt.
    """

    folder: Path
    deadline_s: float = DEADLINE_S
    grace_s: float = GRACE_S
    memory_limit_bytes: int | None = None
    marker: Literal["module", "none"] = "module"
    steps: tuple[int, int] | None = None
    locate: bool = True
    ladder: bool = True
    progress: Callable[[str], None] | None = None


class Attempts:
    """The attempts so far. ``findings`` and ``analyses`` run along with ``records``."""

    def __init__(self, command: Sequence[str], options: ReplayOptions) -> None:
        self.command = list(command)
        self.options = options
        self.records: list[ReplayAttempt] = []
        self.limits_told: dict[str, None] = {}  # each once, in order
        self.findings: list[Finding] = []
        self.analyses: list[Result | None] = []
        options.folder.mkdir(parents=True, exist_ok=True)

    @property
    def interrupted(self) -> bool:
        """Whether the last attempt was ended by Ctrl-C."""
        return bool(self.records) and self.records[-1].outcome == "interrupted"

    def run(self, rung: Rung, watch: HookConfig = NO_WINDOW, *, prefix: Sequence[str] = ()) -> Finding:
        """Run one attempt.

        Args:
            rung: What is tried.
            watch: The window, and where to stop.
            prefix: A tool that runs the command (``compute-sanitizer``).
        """
        number = len(self.records) + 1
        if self.options.progress is not None:
            self.options.progress(f"attempt {number}: {rung}")
        folder = self.options.folder
        journal, output = folder / f"{number}-{rung}.journal", folder / f"{number}-{rung}.log"
        hook = watch._replace(journal=str(journal), marker=self.options.marker)
        set_here = switches(rung, os.environ, folder)
        child = run_child(
            [*prefix, *self.command],
            env=environment(os.environ, set_here, hook),
            deadline_s=self.options.deadline_s,
            journal=journal,
            output=output,
            grace_s=self.options.grace_s,
            memory_limit_bytes=memory_limit(self.options.memory_limit_bytes),
        )
        analysis = analyze_output(output)
        self.limits_told.update(dict.fromkeys(child.limits_told))
        finding = observe(child, rung, analysis)
        self.findings.append(finding)
        self.analyses.append(analysis)
        self.records.append(_record(number, rung, child, finding, set_here))
        return finding


def with_limits(statement: str, limits_told: Iterable[str]) -> str:
    """A verdict in words, with what our limits did to the attempts."""
    return "; ".join([statement, *(told for told in limits_told if told not in statement)])


def analyze_output(output: Path) -> Result | None:
    """Our own analysis of what a child printed; null = nothing that can be read."""
    try:
        return analyze([str(output)])
    except InputError:
        return None


def _record(
    number: int, rung: Rung, child: ChildOutcome, finding: Finding, set_here: dict[str, str]
) -> ReplayAttempt:
    return ReplayAttempt(
        number=number,
        rung=rung,
        outcome=finding.outcome,
        command=child.command,
        switches=set_here,
        duration_s=round(child.duration_s, 3),
        output=str(child.output),
        exit_code=child.exit_code,
        signal=child.signal,
        timed_out=child.timed_out,
        kind=finding.kind,
        error=finding.error,
        op=finding.op,
        producer=finding.producer,
        sound_before=finding.sound_before,
        stopped=child.stopped,
        used_device=finding.used_device,
        reached=reached_window(child.journal),
        steps=max((one.step for one in child.journal.progress), default=-1) + 1 or None,
        ops=child.journal.total,
        notes=(*child.limits_told, *finding.notes),
    )

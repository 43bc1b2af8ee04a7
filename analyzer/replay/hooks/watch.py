# ruff: noqa: TID252  (loaded as `trace_analyze_hooks` where `analyzer` may not be installed)
"""Counts ops and steps of a program, journals those of the window, and ends the run where it is told to."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from .config import EXIT_STOPPED, FOREVER, HookConfig
from .frames import raised_place, user_place, without_hook_frames
from .journal import BEGUN, FINISHED, STEP, JournalWriter, open_progress


class Launch(NamedTuple):
    """One launch.

    ``kind``: ``op`` (dispatched) or ``kernel`` (past the dispatcher). ``tensors`` describes those of
    ``inputs`` and of the result; ``call`` launches it. ``mutates``: it writes into its inputs.
    """

    number: int
    name: str
    kind: str
    tensors: Callable[[Any], list[dict[str, object]]]
    inputs: Any
    call: Callable[[], Any]
    mutates: bool | None = None


class Watch:
    """The state of one process.

    An op with a number of at least ``loud_from`` is in the window: it is journalled before its launch and the
    device is synchronised after it. Below, ops are only counted.
    """

    def __init__(self, config: HookConfig) -> None:
        self.config = config
        self.journal = JournalWriter(config.journal)
        self.progress = open_progress(config.journal)
        self.loud_from = config.ops[0] if config.ops else FOREVER
        self.loud_to = config.ops[1] if config.ops else FOREVER
        self.synchronize: Callable[[], None] = _nothing
        self.uses_device: Callable[[], bool] | None = None
        self.open_window: Callable[[], None] = _nothing
        self.in_step: Callable[[], bool] = _always
        self.last_name = "the start of the window"
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self.progress = open_progress(self.config.journal)

    @property
    def step(self) -> int | None:
        """The step that runs, from 0; null before the first one."""
        step = int(self.progress[STEP])
        return step if step >= 0 else None

    def enter_step(self) -> int:
        """A new step begins: the one before is over. Opens and closes the window."""
        over = int(self.progress[STEP])
        if over >= 0 and over == self.config.stop_after_step:
            self.stop(f"after step {over}")
        step = over + 1
        self.progress[STEP] = step
        self.journal.write("step", step=step)
        if step == self.config.stop_before_step:
            self.stop(f"before step {step}")
        if self.config.steps:
            first, last = self.config.steps
            self.loud_from = 0 if first <= step <= last else FOREVER
            if step >= first:
                self.open_window()
        return step

    def stop(self, why: str) -> None:
        """End the run cleanly: everything launched so far is sound. Raises what the device still reports."""
        self.synchronize()
        self.journal.write("stopped", why=why, step=self.step, on_device=self.on_device())
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # closed by the program
                stream.flush()
        os._exit(EXIT_STOPPED)  # no atexit work, no waiting for threads: the window is over

    def on_device(self) -> bool | None:
        """Whether a device is in use; null = no framework that we know is loaded."""
        return self.uses_device() if self.uses_device is not None else None

    def begin(self) -> int:
        """Count an op; gives its number."""
        number = int(self.progress[BEGUN])
        self.progress[BEGUN] = number + 1
        return number

    def finish(self) -> None:
        """Count that the host has left the op."""
        self.progress[FINISHED] += 1

    def is_loud(self, number: int) -> bool:
        """Whether the op is in the window."""
        return self.loud_from <= number <= self.loud_to

    def run_loud(self, launch: Launch) -> Any:
        """Launch an op of the window: earlier work is synchronised first, so that a failure has one place."""
        number, name = launch.number, launch.name
        self._synchronize_gap(launch)
        if number == self.config.stop_before_op:
            self.stop(f"before op {number} ({name})")
        facts = {"step": self.step, "kind": launch.kind, "place": user_place()}
        inputs = launch.tensors(launch.inputs)
        between = None if self.in_step() else True
        self.journal.op(number, name, inputs=inputs, mutates=launch.mutates, between=between, **facts)
        try:
            result = launch.call()
            self.synchronize()
        except Exception as error:
            self.journal.failed(number, name, error, **facts)
            raise
        self.journal.done(number, outputs=launch.tensors(result))
        self.last_name = name
        self.finish()
        return result

    def _synchronize_gap(self, launch: Launch) -> None:
        """What fails here was launched after the last op, by something that nobody announced."""
        try:
            self.synchronize()
        except Exception as error:
            gap = f"launch between {self.last_name} and {launch.name}"
            self.journal.failed(launch.number, gap, error, step=self.step, kind="gap", place=user_place())
            raise

    def failed_quietly(self, launch: Launch, error: Exception) -> None:
        """An op outside the window raised."""
        inputs = launch.tensors(launch.inputs)
        facts = {"step": self.step, "kind": launch.kind, "place": user_place(), "inputs": inputs}
        self.journal.failed(launch.number, launch.name, error, **facts)

    def uncaught(self, error: BaseException) -> None:
        """An exception ends the program (or a thread of it): journal it with its chain."""
        chain: list[str] = []
        cause: BaseException | None = error
        while cause is not None and len(chain) < 8:  # enough for any real chain; some are circular
            chain.append(str(cause)[:4000])
            cause.__traceback__ = without_hook_frames(cause.__traceback__)
            cause = cause.__cause__ or cause.__context__
        place = raised_place(error.__traceback__)
        self.journal.write(
            "uncaught", error_type=type(error).__qualname__, error=chain[0], chain=chain, step=self.step,
            place=place,
        )  # fmt: skip


def _nothing() -> None:
    """No framework is loaded."""


def _always() -> bool:
    """Nothing tells the work between two steps from that of a step."""
    return True

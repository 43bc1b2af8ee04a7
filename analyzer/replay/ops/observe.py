"""What one attempt of an op replay showed: from exit code, signal, journal, and what the device printed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from analyzer.replay.errors_seen import is_device_error, kind_of_error, kind_of_signal
from analyzer.replay.journal import Entry, Journal, TensorSeen
from analyzer.replay.observe import ending, proven_suspect, root_fault
from analyzer.replay.report import AttemptOutcome
from analyzer.replay.supervisor import ChildOutcome
from analyzer.schema import FaultKind, Result, Value

FAILING = frozenset({"failed", "hang", "out_of_memory"})
_OWN = frozenset({"inputs", "call"})  # the worker could not make the inputs, or called the op wrongly
_TAIL_BYTES = 4096
_OF_KERNEL = "An error occurred in kernel"


class OpFinding(Value):
    """One attempt, judged.

    ``number``: the plan's op that it ended in; null = none. ``kernel``: the device's own name for what
    faulted. ``host``: host code raised it, neither the device nor a death. ``error``: the line of ``text``
    that says what. ``own``: why our own construction of that op is wrong (then nothing is shown); null = it
    is not. ``sound``: ops that ran through, with nanoseconds and whether device events gave them.
    ``inputs``: what the failing op got.
    """

    outcome: AttemptOutcome
    number: int | None = None
    kernel: str | None = None
    host: bool = False
    kind: FaultKind | None = None
    error: str | None = None
    text: str | None = None
    own: str | None = None
    sound: tuple[tuple[int, int | None, bool], ...] = ()
    skipped: tuple[tuple[int, str], ...] = ()
    inputs: tuple[TensorSeen, ...] = ()
    used_device: bool | None = None
    notes: tuple[str, ...] = ()

    def is_sound(self, number: int) -> bool:
        """Whether an op ran through in this attempt."""
        return any(one == number for one, _, _ in self.sound)


def observe_ops(child: ChildOutcome, analysis: Result | None) -> OpFinding:
    """Judge one attempt. Its place is always exact: the worker waits for the device after each op.

    Args:
        child: How it ended.
        analysis: Our own analysis of its output; null = it printed nothing.
    """
    if child.start_error is not None:
        return OpFinding(outcome="setup_failed", error=child.start_error)
    journal = child.journal
    facts = _Facts(journal)
    if child.interrupted:
        return facts.finding("interrupted")
    if child.disk_full and child.exit_code != 0:
        return facts.finding("setup_failed", error="; ".join(child.limits_told))
    failed = next(journal.of("failed"), None)
    if failed is not None:
        return _raised(failed, analysis, facts)
    if child.exit_code == 0:
        return facts.passed()
    return _died(child, analysis, facts)


class _Facts:
    """What holds of an attempt whatever its outcome is."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        done = [one for one in journal.of("done") if one.number is not None]
        self._sound = tuple((one.number or 0, one.duration_ns, bool(one.on_device)) for one in done)
        self._skipped = tuple((one.number or 0, one.why or "skipped") for one in journal.of("skipped"))
        by_events = any(on_device for _, _, on_device in self._sound)
        # MAX is timed by the host's clock wherever it runs: the worker says at its end what it opened
        self._device = by_events or any(bool(one.on_device) for one in journal.of("bye"))
        self._notes = tuple(one.why for one in journal.of("note") if one.why)

    @property
    def began(self) -> bool:
        """Whether any op ran through."""
        return bool(self._sound)

    def passed(self) -> OpFinding:
        """Nothing failed; where all ops were skipped nothing is shown either."""
        if self._skipped and not self._sound:
            return self.finding("setup_failed", error=self._skipped[0][1])
        return self.finding("passed")

    def finding(
        self,
        outcome: AttemptOutcome,
        entry: Entry | None = None,
        *,
        kernel: str | None = None,
        host: bool = False,
        kind: FaultKind | None = None,
        error: str | None = None,
        own: str | None = None,
    ) -> OpFinding:
        inputs: tuple[TensorSeen, ...] = ()
        if entry is not None:
            inputs = entry.inputs or self.journal.begun(entry).inputs
        return OpFinding(
            outcome=outcome, number=entry.number if entry else None, kernel=kernel, host=host,
            kind=kind, error=error, own=own, sound=self._sound, skipped=self._skipped, inputs=inputs,
            used_device=self._device or any(not one.device.startswith("cpu") for one in inputs),
            notes=self._notes,
        )  # fmt: skip


def _raised(failed: Entry, analysis: Result | None, facts: _Facts) -> OpFinding:
    text = failed.error or ""
    head = _telling_line(text)
    error = f"{failed.error_type}: {head}" if head else failed.error_type or "an exception without a text"
    if failed.why in _OWN:
        return facts.finding("setup_failed", failed, error=error, own=failed.why)
    kind = kind_of_error(failed.error_type or "", text)
    device = is_device_error(text)
    outcome: AttemptOutcome = "out_of_memory" if kind == "out_of_memory" else "failed"
    suspect = proven_suspect(analysis) if device else None
    kernel = suspect.op.name if suspect else None
    found = facts.finding(outcome, failed, kernel=kernel, host=not device, kind=kind, error=error)
    return msgspec.structs.replace(found, text=text)


def _telling_line(text: str) -> str:
    """The first line, but MAX names the kernel first and then the cause (observed.md 10)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(_OF_KERNEL)), lines[0] if lines else "")


def _died(child: ChildOutcome, analysis: Result | None, facts: _Facts) -> OpFinding:
    """It left no word of its own: what was it in, and what did the device say?"""
    opened, bye = child.journal.open_op(), any(True for _ in child.journal.of("bye"))
    if child.timed_out:
        if opened is None:
            told = "the time was over before an op was executed: set --deadline higher"
            return facts.finding("setup_failed", error=told)
        return facts.finding("hang", opened, kind="hang_timeout", error="the op does not end")
    root, suspect = root_fault(analysis), proven_suspect(analysis)
    kind: FaultKind = root.kind if root else kind_of_signal(child.signal or 0)
    error = root.text if root else ending(child)
    if child.killed_for == "memory":
        return facts.finding("out_of_memory", opened, kind="out_of_memory", error=child.limits_told[0])
    if opened is None and suspect is None:
        if bye:
            return facts.passed()  # what a framework does at its own end is none of the ops
        if not facts.began:
            return facts.finding("setup_failed", error=_last_words(child.output) or error)
    outcome: AttemptOutcome = "out_of_memory" if kind == "out_of_memory" else "failed"
    kernel = suspect.op.name if suspect else None
    return facts.finding(outcome, opened, kernel=kernel, kind=kind, error=error)


def _last_words(output: Path) -> str | None:
    """The last line that a child printed: of a traceback it is the exception."""
    try:
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - _TAIL_BYTES))
            data = file.read()
    except OSError:
        return None
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else None

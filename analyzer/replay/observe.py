"""What one attempt showed: from exit code, signal, journal, error text and the analysis of its output.

Never from a pickled exception: the child may be dead in any way.
"""

from __future__ import annotations

import signal

from analyzer.replay.errors_seen import is_device_error, kind_of_error, kind_of_signal
from analyzer.replay.hooks.config import EXIT_STOPPED
from analyzer.replay.journal import Entry, Journal
from analyzer.replay.producers import find_producer
from analyzer.replay.report import AttemptOutcome, BlamedOp, Rung
from analyzer.replay.supervisor import ChildOutcome
from analyzer.replay.switches import is_serialised
from analyzer.schema import Fault, FaultKind, Result, Suspect, Value

_USAGE = 2  # exit code of argument parsers
_CANNOT_RUN = frozenset({126, 127})  # shells and env: not executable, not found
_NO_DEVICE = ("no CUDA-capable device", "Found no NVIDIA driver", "not compiled with CUDA", "No HIP GPUs")


class Position(Value):
    """Where in the run an attempt ended: op number of its process and step from 0; null = not known.

    ``in_call``: the hook saw only the execution of a whole graph.
    """

    number: int | None
    step: int | None
    in_call: bool = False


class Finding(Value):
    """One attempt, judged. See ``ReplayAttempt`` for the fields."""

    outcome: AttemptOutcome
    kind: FaultKind | None = None
    error: str | None = None
    op: BlamedOp | None = None
    producer: BlamedOp | None = None
    sound_before: bool | None = None
    used_device: bool | None = None
    position: Position | None = None
    notes: tuple[str, ...] = ()


def observe(child: ChildOutcome, rung: Rung, analysis: Result | None) -> Finding:
    """Judge one attempt.

    Args:
        child: How it ended.
        rung: What was tried: decides whether a reported place may be believed.
        analysis: Our own analysis of its output; null = it printed nothing.
    """
    if child.start_error is not None:
        return Finding(outcome="setup_failed", error=child.start_error)
    if child.interrupted:
        return Finding(outcome="interrupted")
    if child.disk_full and child.exit_code != 0:
        return Finding(outcome="setup_failed", error="; ".join(child.limits_told))
    if child.timed_out:
        return _timed_out(child.journal)
    root = root_fault(analysis)
    if child.stopped or child.exit_code == EXIT_STOPPED:
        return Finding(outcome="passed", used_device=_used_device(child.journal))
    if child.exit_code == 0 and root is None:
        return Finding(outcome="passed", used_device=_used_device(child.journal))
    return _failed(child, rung, analysis, root)


def root_fault(analysis: Result | None) -> Fault | None:
    """The root fault of an analysis; null = none."""
    return next((fault for fault in analysis.faults if fault.role == "root"), None) if analysis else None


def _timed_out(journal: Journal) -> Finding:
    """A hang is an op that does not end; a server that waits for work at the deadline is none."""
    entry = journal.open_op()
    if entry is not None:
        op = _blamed(journal, entry, exact=True)
        return Finding(
            outcome="hang", kind="hang_timeout", op=op, producer=find_producer(journal, entry),
            position=_position(journal, entry),
        )  # fmt: skip
    if any(one.begun > one.finished for one in journal.progress) and not _any_failed(journal):
        return Finding(
            outcome="hang",
            kind="hang_timeout",
            position=_position(journal, None),
            notes=("an op outside the window was running",),
        )
    if any(True for _ in journal.of("torch", "max")):
        return Finding(outcome="running", notes=("no op was running when the time was over",))
    note = "nothing told which op was running when the time was over"
    return Finding(outcome="hang", kind="hang_timeout", notes=(note,))


def _any_failed(journal: Journal) -> bool:
    return any(True for _ in journal.of("failed"))


def _failed(child: ChildOutcome, rung: Rung, analysis: Result | None, root: Fault | None) -> Finding:
    journal = child.journal
    raised = _uncaught(journal)
    entry = _failed_entry(journal, raised) or journal.open_op()
    op = _place(journal, entry, rung, analysis)
    kind, error = _what(child, entry, root, raised)
    placed = op is not None and op.kind != "python"
    if not placed and not _is_of_device(root) and _never_began(child, raised):
        return Finding(outcome="setup_failed", error=error or ending(child))
    return Finding(
        outcome="out_of_memory" if kind == "out_of_memory" else "failed",
        kind=kind,
        error=error or ending(child),
        op=op,
        producer=find_producer(journal, entry) if entry else None,
        sound_before=_sound_before(journal, entry, op),
        used_device=_used_device(journal),
        position=_position(journal, entry),
        notes=_notes(child),
    )


def _uncaught(journal: Journal) -> Entry | None:
    return next(journal.of("uncaught"), None)


def _failed_entry(journal: Journal, raised: Entry | None) -> Entry | None:
    """The op whose exception ended the program; one that the program handled is not it.

    The first device error counts: later ones are its cascade. Of host errors, the one that ended the program.
    """
    failed = list(journal.of("failed"))
    device = [entry for entry in failed if is_device_error(entry.error or "")]
    if device:
        same = [entry for entry in device if entry.number == device[0].number and entry.pid == device[0].pid]
        return next((entry for entry in same if entry.kind != "call"), device[0])
    if raised is not None:
        texts = raised.chain or ((raised.error or ""),)
        return next((entry for entry in failed if entry.error in texts), None)
    return failed[-1] if failed else None


def _place(journal: Journal, entry: Entry | None, rung: Rung, analysis: Result | None) -> BlamedOp | None:
    """The best place: journal of a serialised run, what the output proves, the call, a Python line."""
    exact = entry is not None and (is_serialised(rung) or not is_device_error(entry.error or ""))
    if entry is not None and entry.kind != "call" and exact:
        return _blamed(journal, entry, exact=True)
    suspect = proven_suspect(analysis)
    if suspect is not None:
        return _blamed_suspect(suspect, entry)
    if entry is not None:
        return _blamed(journal, entry, exact=False)
    raised = _uncaught(journal)
    if raised is not None and raised.place is not None:
        name = raised.error_type or "exception"
        return BlamedOp(name=name, kind="python", exact=True, step=raised.step, source=raised.place)
    return None


def proven_suspect(analysis: Result | None) -> Suspect | None:
    """The op that the output of the child proves guilty."""
    if analysis is None or analysis.conclusion.confidence != "proven":
        return None
    return next((one for one in analysis.suspects if one.rank == analysis.conclusion.suspect), None)


def _blamed(journal: Journal, entry: Entry, *, exact: bool) -> BlamedOp:
    inputs = entry.inputs or journal.begun(entry).inputs
    ranges = [
        f"input {place}: values from {one.low} to {one.high}"
        for place, one in enumerate(inputs)
        if one.low is not None
    ]
    return BlamedOp(
        name=entry.name or "unknown op",
        kind=entry.kind,
        exact=exact and entry.kind != "call",
        number=entry.number,
        step=entry.step,
        source=entry.place,
        tensors=tuple(one.info() for one in inputs),
        notes=tuple(ranges),
    )


def _blamed_suspect(suspect: Suspect, entry: Entry | None) -> BlamedOp:
    """The hook counts the steps of this very run; the log's own numbering is the second choice."""
    step = entry.step if entry is not None and entry.step is not None else suspect.op.step
    return BlamedOp(
        name=suspect.op.name,
        kind="op" if suspect.op.line is not None else "kernel",
        exact=True,
        number=entry.number if entry else None,
        step=step,
        source=suspect.source[0] if suspect.source else None,
        tensors=tuple(suspect.tensors),
    )


def _what(
    child: ChildOutcome, entry: Entry | None, root: Fault | None, raised: Entry | None
) -> tuple[FaultKind, str | None]:
    if child.killed_for == "memory":
        return "out_of_memory", child.limits_told[0]
    if root is not None:
        return root.kind, root.text
    for one in (entry, raised):
        if one is not None and one.error is not None:
            return kind_of_error(one.error_type or "", one.error), f"{one.error_type}: {one.error}"
    if child.signal is not None:
        return kind_of_signal(child.signal), None
    return "unknown", None


def _is_of_device(root: Fault | None) -> bool:
    """A fault that a device or its driver told, as against an exception of host code."""
    return root is not None and (root.sticky or root.code is not None or root.device is not None)


def _never_began(child: ChildOutcome, raised: Entry | None) -> bool:
    """The program did not get as far as an op: nothing is known about the failure that the log shows."""
    began = any(one.begun > 0 or one.step >= 0 for one in child.journal.progress)
    if raised is not None and any(text in (raised.error or "") for text in _NO_DEVICE):
        return True
    if child.signal is not None or child.killed_for is not None or began:
        return False
    hooked = any(True for _ in child.journal.of("hello"))
    return hooked or child.exit_code in _CANNOT_RUN or child.exit_code == _USAGE


def ending(child: ChildOutcome) -> str:
    """How a child ended that left no error text."""
    if child.killed_for is not None:
        return f"ended by us: {child.killed_for} limit"
    if child.signal is not None:
        name = signal.Signals(child.signal).name if child.signal in set(signal.Signals) else str(child.signal)
        return f"died of {name}"
    return f"ended with exit code {child.exit_code}"


def _notes(child: ChildOutcome) -> tuple[str, ...]:
    notes = []
    if child.signal == signal.SIGKILL and child.killed_for is None:
        notes.append(
            "something else killed it with SIGKILL: the kernel does that when the host has no memory left"
        )
    if child.journal.lost:
        notes.append(f"{child.journal.lost} journal lines did not read")
    if child.left_over:
        notes.append(f"processes that could not be killed: {', '.join(map(str, child.left_over))}")
    return tuple(notes)


def _sound_before(journal: Journal, entry: Entry | None, op: BlamedOp | None) -> bool | None:
    """Whether the same op, from the same line, was sound earlier in this attempt; a graph likewise."""
    if entry is None or op is None or not any(True for _ in journal.of("op")):
        return None
    finished = {(one.pid, one.number) for one in journal.of("done")}
    sound = [one for one in journal.of("op") if (one.pid, one.number) in finished]
    begun = journal.begun(entry)
    return any((one.name, one.place, one.graph) == (begun.name, begun.place, begun.graph) for one in sound)


def _position(journal: Journal, entry: Entry | None) -> Position | None:
    """Of the op that is to blame; else what the counters say of an op that the host never left."""
    if entry is not None:
        return Position(number=entry.number, step=entry.step, in_call=entry.kind == "call")
    inside = next((one for one in journal.progress if one.begun > one.finished), None)
    if inside is None:
        return None
    return Position(number=inside.begun - 1, step=inside.step if inside.step >= 0 else None)


def reached_window(journal: Journal) -> bool | None:
    """Whether an op was begun that the hook looks at; null = no framework that it knows was loaded.

    Until the first step of a window the hook sees no op of PyTorch at all.
    """
    if any(one.begun > 0 for one in journal.progress):
        return True
    return False if any(True for _ in journal.of("torch", "max")) else None


def _used_device(journal: Journal) -> bool | None:
    devices = {one.device for entry in journal.of("op", "failed") for one in entry.inputs}
    if any(not device.startswith(("cpu", "meta")) for device in devices):
        return True
    uses = [entry.on_device for entry in journal.of("bye", "stopped") if entry.on_device is not None]
    return any(uses) if uses else None

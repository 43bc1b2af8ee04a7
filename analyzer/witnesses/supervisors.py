"""How a process ended, as those tell it that watch it (formats.md 3.21).

These are systemd, Slurm, supervisord, the kernel, a debugger and Go's runtime. They name a signal and often
a pid or a task, hardly ever a cause, but for one: missing memory of the host. Who was asked to stop did not
die.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading, Record, StopRequest
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen
from analyzer.witnesses.memory_kills import OF_HOST, OF_LIMIT, memory_death, without_explained
from analyzer.witnesses.server_lines import (
    death,
    read_server,
    relayed,
    signal_named,
    signal_of_exit,
    signal_of_words,
)

NAME = "supervisors"
_UNIT = r"(?:[A-Za-z0-9@_.\-\\:]+: )?"
_WORDS = "Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Killed|Terminated"
_CHILD = "killed|aborted|segmentation fault|bus error|illegal instruction|floating point exception"
_GO = "segmentation violation|abort|bus error|illegal instruction|floating-point exception"
_FORMS = (
    Form(rule="main", begins=_UNIT + "(?:Main|main|Control) process exited, code="),
    Form(rule="result", begins=_UNIT + "Failed with result '"),
    Form(rule="unit", begins=_UNIT + "A process of this unit has been killed by the OOM killer"),
    Form(rule="events", begins="Detected [0-9]+ oom[_-]kill event"),
    Form(
        rule="task",
        begins=r"srun: error: [^:]+: tasks? [0-9,\-]+: (?:Out Of Memory|Exited with exit code|"
        + _WORDS
        + ")",
    ),
    Form(rule="cancelled", begins=r"\*\*\* (?:JOB|STEP) [0-9][^ ]* ON [^ ]+ CANCELLED AT "),
    Form(rule="segfault", begins=r"[^\s\[\]]+\[[0-9]+\]: segfault at "),
    Form(rule="trap", begins=r"traps: [^\s\[\]]+\[[0-9]+\] "),
    Form(rule="debugger", begins="received signal SIG[A-Z]+, "),
    Form(rule="runtime", begins=f"^SIG[A-Z]+: (?:{_GO})$"),
    Form(rule="child", begins=f"signal: (?:{_CHILD})"),
    Form(rule="early", begins="sending SIGKILL to process [0-9]+ "),
    # ``INFO exited: vllm (...``: the logger's layer can take the word before the program for its own name
    Form(rule="program", begins=r"[^\s()]+ \(terminated by SIG[A-Z]+[^;]*; (?:not )?expected\)[\s\"'\\}]*$"),
)
_ASKED = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGPIPE"})
_MEMORY_RESULT = "oom-kill"
_TRAPS = {"invalid opcode": "SIGILL", "divide error": "SIGFPE"}  # the others are bad pointers


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    reading = read_server(frame, fetch, NAME, _FORMS, _BUILDS)
    reading.records = without_explained(reading.records)
    return reading


def _by_signal(seen: Seen, name: str | None) -> list[FaultRecord]:
    """A death, if the signal is one that nobody asked for."""
    signal = signal_named(name or "")
    if signal is None or signal.name in _ASKED:
        return []
    fault = death(
        seen, NAME, signal, seen.text.strip(' "\\\t')
    )  # a field of a structured log ends in a quote
    return [msgspec.structs.replace(fault, pid=seen.number("PID") or fault.pid, relayed=True)]


def _main(seen: Seen) -> Sequence[Record]:
    """The service manager waited for the process; an exit code can be the signal of a child."""
    if seen.get("HOW") != "exited":
        return _by_signal(seen, f"SIG{seen.get('SHORT')}")
    signal = signal_of_exit(seen.number("STATUS") or 0)
    return [] if signal is None else _by_signal(seen, signal.name)


def _result(seen: Seen) -> Sequence[Record]:
    """Other results repeat the line of the process."""
    return [memory_death(seen, NAME, OF_LIMIT)] if seen.get("RESULT") == _MEMORY_RESULT else []


def _of_limit(seen: Seen) -> Sequence[Record]:
    return [memory_death(seen, NAME, OF_LIMIT)]


def _of_host(seen: Seen) -> Sequence[Record]:
    return [memory_death(seen, NAME, OF_HOST)]


def _task(seen: Seen) -> Sequence[Record]:
    """Slurm numbers the tasks of a step as the ranks are numbered."""
    rank = seen.number("RANK")
    if seen.get("MEMORY") is not None:
        return [msgspec.structs.replace(memory_death(seen, NAME, OF_LIMIT), rank=rank)]
    status = seen.number("STATUS")
    signal = signal_of_words(seen.get("WORDS") or "") if status is None else signal_of_exit(status)
    if signal is None:
        return []
    return [msgspec.structs.replace(death(seen, NAME, signal), rank=rank, relayed=True)]


def _cancelled(seen: Seen) -> Sequence[Record]:
    """Without a reason somebody, or srun after a failed task, cancelled it."""
    reason = seen.get("REASON")
    if reason is None:
        return []
    fault = relayed(seen, NAME, "configuration" if "LIMIT" in reason else "peer_lost")
    asked = StopRequest() if reason.startswith("PREEMPTION") else None
    return [msgspec.structs.replace(fault, detail=asked)]


def _segfault(seen: Seen) -> Sequence[Record]:
    return _by_signal(seen, "SIGSEGV")


def _trap(seen: Seen) -> Sequence[Record]:
    return _by_signal(seen, _TRAPS.get(seen.get("TRAP") or "", "SIGSEGV"))


def _signal(seen: Seen) -> Sequence[Record]:
    return _by_signal(seen, seen.get("SIGNAL"))


def _child(seen: Seen) -> Sequence[Record]:
    signal = signal_of_words(seen.get("CHILD") or "")
    return [] if signal is None else _by_signal(seen, signal.name)


def _program(seen: Seen) -> Sequence[Record]:
    """Supervisord tells an end that its configuration expects in the same words."""
    return _signal(seen) if seen.get("EXPECTED") == "not expected" else []


_BUILDS = {
    "main": _main,
    "result": _result,
    "unit": _of_limit,
    "events": _of_limit,
    "task": _task,
    "cancelled": _cancelled,
    "segfault": _segfault,
    "trap": _trap,
    "debugger": _signal,
    "runtime": _signal,
    "child": _child,
    "early": _of_host,
    "program": _program,
}
WITNESS = Witness(
    name=NAME,
    gates=(
        " process exited, code=",
        "Failed with result ",
        "has been killed by the OOM killer",
        " oom_kill event",
        " oom-kill event",
        "srun: error: ",
        " CANCELLED AT ",
        ": segfault at ",
        "traps: ",
        "received signal SIG",
        "SIGSEGV: segmentation",
        "SIGABRT: abort",
        "SIGBUS: bus error",
        "SIGILL: illegal",
        "SIGFPE: floating",
        *(f"signal: {words}" for words in _CHILD.split("|")),
        "sending SIGKILL to process ",
        " (terminated by SIG",
    ),
    read=read,
    grammar="supervisors.lark",
)

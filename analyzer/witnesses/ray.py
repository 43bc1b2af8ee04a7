"""What Ray says about tasks, actors and workers (formats.md 3.21, 6).

A ``RayTaskError`` carries the text of another process into the driver; an actor's death names a pid. Lines
that Ray left out as repeats are counted by ``readings.complete``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading, Record
from analyzer.numbers import natural
from analyzer.parse.oom_text import OF_HOST
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault
from analyzer.witnesses.server_lines import death, read_server, relayed, signal_named

NAME = "ray"
_FORMS = (
    Form(rule="signal", begins=r"\*\*\* SIG[A-Z]+ received at time="),
    Form(rule="task", begins=r"RayTaskError(?:\([A-Za-z_.]+\))?: "),
    Form(rule="actor", begins=r"(?:ActorDiedError|RayActorError|ActorUnavailableError): "),
    Form(rule="dead", begins=r"The actor is dead because"),
    Form(rule="worker", begins=r"A worker died or was killed while executing a task"),
    Form(rule="memory", begins=r"(?:Task was killed due to the node|[A-Za-z ]*)running low on memory"),
)
_FINE = " not running low"
_DETAILS = ("class_name:", "actor_id:", "pid:", "name:", "namespace:", "ip:", "The actor ")
_DETAIL_LINES = 12


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    reading = read_server(frame, fetch, NAME, _FORMS, _BUILDS)
    fetched = 0
    for at, record in enumerate(reading.records):
        if isinstance(record, FaultRecord) and "Actor" in record.text and fetched < FETCHED:
            fetched += 1
            reading.records[at], lines = _with_details(record, fetch)
            reading.continuation.extend(lines)
    known = set(reading.parsed)
    reading.continuation = sorted(set(reading.continuation) - known)
    return reading


def _with_details(fault: FaultRecord, fetch: Fetch) -> tuple[FaultRecord, list[int]]:
    """The pid that stands in the indented lines below, and these lines."""
    lines, pid = [], fault.pid
    for line in fetch.after(fault.line, fault.process, _DETAIL_LINES):
        text = line.text.strip()
        if not text.startswith(_DETAILS):
            break
        lines.append(line.number)
        number = text.removeprefix("pid:").strip()
        if text.startswith("pid:"):
            pid = pid if (told := natural(number)) is None else told
    return msgspec.structs.replace(fault, pid=pid, last_line=max([fault.last_line, *lines])), lines


def _task(seen: Seen) -> Sequence[Record]:
    """The driver prints the traceback of a worker: the error below is the worker's."""
    fault = relayed(seen, NAME, "peer_lost")
    return [msgspec.structs.replace(fault, pid=seen.number("PID") or fault.pid)]


def _lost(seen: Seen) -> Sequence[Record]:
    fault = relayed(seen, NAME, "peer_lost")
    return [msgspec.structs.replace(fault, pid=seen.number("PID") or fault.pid)]


def _dead(seen: Seen) -> Sequence[Record]:  # noqa: ARG001  (told by the line above)
    return []


def _memory(seen: Seen) -> Sequence[Record]:
    """Ray's own monitor kills a worker before the kernel does."""
    if _FINE in seen.text:
        return []
    fault = build_fault(seen, NAME, "out_of_memory", "host")
    return [msgspec.structs.replace(fault, text=f"{fault.text} ({OF_HOST})")]


def _signal(seen: Seen) -> Sequence[Record]:
    signal = signal_named(seen.get("SIGNAL") or "")
    return [death(seen, NAME, signal) if signal else relayed(seen, NAME, "host_abort")]


_BUILDS = {
    "signal": _signal,
    "task": _task,
    "actor": _lost,
    "dead": _dead,
    "worker": _lost,
    "memory": _memory,
}
WITNESS = Witness(
    name=NAME,
    program="ray",
    gates=(
        "RayTaskError",
        "ActorDiedError: ",
        "RayActorError: ",
        "ActorUnavailableError: ",
        "The actor is dead because",
        "A worker died or was killed while executing a task",
        "running low on memory",
        " received at time=",
    ),
    read=read,
    grammar="ray.lark",
)

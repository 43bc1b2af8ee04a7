"""Why a container ended, as Kubernetes and Docker tell it (formats.md 3.21).

The text of ``kubectl describe pod``, ``kubectl get pods|events``, ``-o json``, ``-o yaml``, of ``docker
inspect`` and ``docker events``, pasted into a log or given as a file of its own. ``OOMKilled`` is about the
memory of the host; the exit code 137 beside it is the same death.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading, Record
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import FETCHED, Form, Seen, read_line
from analyzer.witnesses.memory_kills import (
    KILLED,
    NEAR_LINES,
    OF_HOST,
    OF_LIMIT,
    memory_death,
    without_explained,
)
from analyzer.witnesses.server_lines import VIEWER_FRAME, death, read_server, relayed, signal_of_exit

NAME = "kubernetes"
_FORMS = (
    Form(
        rule="killed",
        begins=r'[Rr]eason:\s+"?OOMKilled"?[\s|\x{2502}]*$|"reason": ?"OOMKilled"|"OOMKilled": ?true',
    ),
    Form(rule="pod", begins=r"^[a-z0-9][a-z0-9.\-]* +[0-9]+/[0-9]+ +OOMKilled\b"),
    Form(rule="backoff", begins="Back-off restarting failed container"),
    Form(rule="probe", begins=r"Container \S+ failed (?:liveness|startup) probe, will be restarted"),
    Form(rule="evicted", begins="The node was low on resource: "),
    Form(rule="victim", begins="System OOM encountered, victim process: "),
    Form(rule="event", begins="container oom [0-9a-f]+"),
    Form(
        rule="exit",
        begins=r'Exit Code:\s+-?[0-9]+[\s|\x{2502}]*$|"[eE]xitCode": ?-?[0-9]|exitCode(?:: |=)-?[0-9]',
    ),
)
_RULES = _STARTED, _FINISHED = ("started", "finished")
_DEATHS = frozenset({"out_of_memory", "host_abort", "host_segfault"})


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    reading = read_server(frame, fetch, NAME, _FORMS, _BUILDS)
    reading.records = _without_probed(without_explained(reading.records))
    for at, record in enumerate(reading.records[:FETCHED]):
        if isinstance(record, FaultRecord) and record.kind in _DEATHS:
            reading.records[at], lines = _with_times(record, fetch)
            reading.continuation.extend(lines)
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    return reading


def _without_probed(records: Sequence[Record]) -> list[Record]:
    """The records without the kills that Kubernetes made itself, because a probe got no answer."""
    probed = any(isinstance(one, FaultRecord) and one.kind == "hang_timeout" for one in records)
    return [one for one in records if not (probed and isinstance(one, FaultRecord) and one.name == KILLED)]


def _with_times(fault: FaultRecord, fetch: Fetch) -> tuple[FaultRecord, list[int]]:
    """From when to when the container ran.

    It stands a few lines below, the end also above (JSON sorts its keys); a start above is that of the
    container that runs now.
    """
    told: dict[str, str] = {}
    used = []
    after = [(line, rule) for line in fetch.after(fault.line, fault.process, NEAR_LINES) for rule in _RULES]
    before = [(line, _FINISHED) for line in fetch.before(fault.line, fault.process, NEAR_LINES)]
    for line, rule in [*after, *before]:
        fields = read_line(NAME, rule, line.text.strip(VIEWER_FRAME)) if rule in line.text.lower() else None
        if fields is not None and rule not in told:
            told[rule] = fields["TIME"][0].strip('", ')
            used.append(line.number)
    if _FINISHED not in told:
        return fault, []
    since = f"ran from {told[_STARTED]} " if _STARTED in told else "ran "
    return msgspec.structs.replace(fault, text=f"{fault.text}; {since}to {told[_FINISHED]}"), used


def _memory(seen: Seen) -> Sequence[Record]:
    return [memory_death(seen, NAME, OF_LIMIT)]


def _victim(seen: Seen) -> Sequence[Record]:
    return [memory_death(seen, NAME, OF_HOST)]


def _exit(seen: Seen) -> Sequence[Record]:
    """An exit code that tells a signal; other codes say nothing that the container's own log does not."""
    signal = signal_of_exit(seen.number("STATUS") or 0)
    if signal is None:
        return []
    text = seen.text.strip(f"{VIEWER_FRAME},")
    return [msgspec.structs.replace(death(seen, NAME, signal, text), relayed=True)]


def _backoff(seen: Seen) -> Sequence[Record]:
    return [relayed(seen, NAME, "unknown")]


def _probe(seen: Seen) -> Sequence[Record]:
    """Kubernetes kills what does not answer any more; the exit code is 137 as well."""
    text = f"{seen.text.strip()} (it gave no answer and was killed for that: no sign of missing memory)"
    return [relayed(seen, NAME, "hang_timeout", text)]


def _evicted(seen: Seen) -> Sequence[Record]:
    if seen.get("RESOURCE") == "memory":
        return [memory_death(seen, NAME, OF_HOST)]
    return [relayed(seen, NAME, "configuration")]


_BUILDS = {
    "killed": _memory,
    "pod": _memory,
    "event": _memory,
    "victim": _victim,
    "exit": _exit,
    "backoff": _backoff,
    "probe": _probe,
    "evicted": _evicted,
}
WITNESS = Witness(
    name=NAME,
    program="kubernetes",
    gates=(
        "OOMKilled",
        "Exit Code:",
        "xitCode",
        "Back-off restarting failed container",
        " probe, will be restarted",
        "The node was low on resource: ",
        "System OOM encountered",
        "container oom ",
    ),
    read=read,
    grammar="kubernetes.lark",
)

"""What SGLang says when a scheduler or another child fails (formats.md 3.12).

The tag stands on the first line only; the traceback below it is given to the same process by
``ingest.owners``, and its error is read by other witnesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, takewhile

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Line, Reading, Record
from analyzer.numbers import integer
from analyzer.parse.source_stack import HEADER
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault
from analyzer.witnesses.server_lines import announced, death, read_server, relayed, signal_of_exit

NAME = "sglang"
_OF_VLLM = "WorkerProc"  # vLLM says the same words of it, and reads them itself
_FORMS = (
    Form(rule="hit", begins=r"[A-Za-z_]+ hit an exception: "),
    Form(rule="sigquit", begins=r"Received sigquit from a child|SIGQUIT received\."),
    Form(rule="watchdog", begins=r"(?:[A-Za-z]+ watchdog|Watchdog) timeout \(self"),
    Form(rule="crashed", begins=r"Subprocess \S+ \(pid=[0-9]+\) crashed with exit code"),
    Form(rule="dead", begins=r"Rank [0-9]+ scheduler is dead\."),
    Form(rule="died", begins=r"Rank [0-9]+ scheduler died during initialization \(exit code: "),
    # "Decode out of memory happened" retracts requests, and goes on.
    Form(rule="memory", begins=r"(?:Prefill|Decode) out of memory\. Try |Not enough memory\. Please try "),
)
_IS_DEAD = "scheduler is dead."
_EXIT_CODE = "Exit code:"
_PIPE = "EOFError"  # who waited for the scheduler to be ready read the end of its pipe
_DEAD_LINES = 60  # exit code and traceback of who waited


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    reading = read_server(frame, fetch, NAME, _FORMS, _BUILDS)
    fetched = 0
    for at, record in enumerate(list(reading.records)):
        if isinstance(record, FaultRecord) and _IS_DEAD in record.text and fetched < FETCHED:
            fetched += 1
            told = _with_exit(record, fetch)
            reading.records[at] = told[0]
            reading.records.extend(told[1:])
            reading.continuation.append(told[0].last_line)
            reading.parsed.extend(pipe.line for pipe in told[1:])
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    return reading


def _with_exit(fault: FaultRecord, fetch: Fetch) -> list[FaultRecord]:
    """How the scheduler ended, as the line below says, and the exception of who waited for it."""
    below = fetch.after(fault.line, fault.process, _DEAD_LINES)
    if not below or not below[0].text.startswith(_EXIT_CODE):
        return [fault]
    code = below[0].text.removeprefix(_EXIT_CODE).strip()
    text = f"{fault.text} Exit code: {code}"
    number = integer(code)
    signal = None if number is None else signal_of_exit(number)
    told = msgspec.structs.replace(fault, text=text, last_line=below[0].number)
    if signal is not None:
        said = f"{text} ({signal.name}: {signal.meaning})"
        told = msgspec.structs.replace(told, text=said, kind=signal.kind, name=signal.name)
    pipe = _pipe(fault, below[1:])
    return [told] if pipe is None else [told, pipe]


def _pipe(fault: FaultRecord, below: Sequence[Line]) -> FaultRecord | None:
    """The ``EOFError`` of the process that read the pipe; null = there is none.

    Its traceback is told by its form: a carrier stamps each line of it.
    """
    trace = list(dropwhile(lambda line: HEADER not in line.text, below))
    body = list(takewhile(lambda line: line.text.startswith((" ", HEADER)), trace))
    end = next(iter(trace[len(body) :]), None)
    if end is None or end.text.strip() != _PIPE:
        return None
    text = f"{_PIPE}: nobody writes into the pipe of the scheduler any more"
    at = {"line": end.number, "last_line": end.number, "block_first": trace[0].number}
    return msgspec.structs.replace(fault, text=text, kind="peer_lost", name=None, count=1, **at)


def _hit(seen: Seen) -> Sequence[Record]:
    """The head of a traceback, whose end says what happened."""
    if seen.get("NAME") == _OF_VLLM:
        return []
    text, said = f"{seen.get('NAME')} hit an exception", (seen.get("TEXT") or HEADER).strip()
    if said != HEADER:
        return [relayed(seen, NAME, "unknown", f"{text}: {said}")]
    return [announced(seen, NAME, text)]


def _sigquit(seen: Seen) -> Sequence[Record]:
    return [relayed(seen, NAME, "peer_lost")]


def _watchdog(seen: Seen) -> Sequence[Record]:
    """The scheduler made no step for minutes: it hangs, in a collective or in a kernel."""
    return [build_fault(seen, NAME, "hang_timeout", "host", met=True)]


def _crashed(seen: Seen) -> Sequence[Record]:
    """The liveness monitor saw how a child ended that could not say so itself."""
    signal = signal_of_exit(seen.number("EXIT") or 0)
    fault = death(seen, NAME, signal) if signal else relayed(seen, NAME, "unknown")
    return [msgspec.structs.replace(fault, pid=seen.number("PID"), relayed=True)]


def _dead(seen: Seen) -> Sequence[Record]:
    """The launcher read the end of the pipe before the scheduler was ready."""
    fault = relayed(seen, NAME, "peer_lost")
    return [msgspec.structs.replace(fault, rank=seen.number("RANK"))]


def _died(seen: Seen) -> Sequence[Record]:
    """A newer word for it; exit codes that tell a signal are read by ``process_death``."""
    if signal_of_exit(seen.number("EXIT") or 0) is not None:
        return []
    return [msgspec.structs.replace(relayed(seen, NAME, "peer_lost"), rank=seen.number("RANK"))]


def _memory(seen: Seen) -> Sequence[Record]:
    """The pool of the server has no room: no call of the device failed."""
    fault = build_fault(seen, NAME, "out_of_memory", "host")
    return [msgspec.structs.replace(fault, text=f"{fault.text} (pool of the server: no allocation failed)")]


_BUILDS = {
    "hit": _hit,
    "sigquit": _sigquit,
    "watchdog": _watchdog,
    "crashed": _crashed,
    "dead": _dead,
    "died": _died,
    "memory": _memory,
}
WITNESS = Witness(
    name=NAME,
    program="sglang",
    gates=(
        " hit an exception: ",
        "Received sigquit from a child",
        "SIGQUIT received.",
        "atchdog timeout (self",
        " crashed with exit code ",
        " scheduler is dead.",
        " scheduler died during initialization",
        " out of memory. Try to ",
        "Not enough memory. Please try ",
    ),
    read=read,
    grammar="sglang.lark",
)

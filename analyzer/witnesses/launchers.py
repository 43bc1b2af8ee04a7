"""How a process ended, in the words of whoever started it (formats.md 3.21).

DeepSpeed, Accelerate, Ollama and Open MPI waited for it: they know its signal or exit code, never the cause.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading, Record
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen
from analyzer.witnesses.server_lines import death, read_server, relayed, signal_of_exit

NAME = "launchers"
_FORMS = (
    Form(rule="returned", begins=r"exits with return code = -?[0-9]"),
    Form(rule="signalled", begins=r"died with <Signals\.SIG[A-Z0-9]+: [0-9]+>"),
    Form(rule="runner", begins=r"llama runner process has terminated:"),
    Form(rule="abort", begins=r"MPI_ABORT was invoked on rank [0-9]"),
    Form(
        rule="noticed", begins=r"noticed that process rank [0-9]+ with PID [0-9]+ on node .* exited on signal"
    ),
    Form(rule="caught", begins=r"\[[A-Za-z0-9_.\-]+:[0-9]+\] Signal: [A-Z][a-z A-Z]+ \([0-9]+\)"),
)
# ``process_death`` and ``supervisors`` read these behind the same words.
_READ_ELSEWHERE = ("signal: ", "exit status 0x")


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_server(frame, fetch, NAME, _FORMS, _BUILDS)


def _ended(seen: Seen, code: int, text: str) -> FaultRecord | None:
    """The end by a signal, or with an exit code; null = it ended well."""
    signal = signal_of_exit(code)
    if signal is not None:
        return msgspec.structs.replace(death(seen, NAME, signal, text), relayed=True)
    return None if code == 0 else relayed(seen, NAME, "peer_lost", text)


def _returned(seen: Seen) -> Sequence[Record]:
    """The command that DeepSpeed prints before it is that of its last rank, whichever rank failed."""
    code = seen.number("EXIT") or 0
    fault = _ended(seen, code, f"a rank of the launcher exits with return code {code}")
    return [] if fault is None else [fault]


def _signalled(seen: Seen) -> Sequence[Record]:
    name, number = seen.get("NAME"), seen.number("NUMBER") or 0
    fault = _ended(seen, -number, f"the command died with {name}")
    return [] if fault is None else [fault]


def _runner(seen: Seen) -> Sequence[Record]:
    """Ollama keeps the last line that its runner wrote as the reason, or the exit status."""
    why = (seen.get("WHY") or "").strip().strip('"')
    if why.startswith(_READ_ELSEWHERE):
        return []
    return [relayed(seen, NAME, "peer_lost", f"llama runner process has terminated: {why}")]


def _abort(seen: Seen) -> Sequence[Record]:
    """A rank ended the whole job, mostly because of an exception that it printed itself."""
    return [_of_rank(seen, relayed(seen, NAME, "peer_lost"))]


def _noticed(seen: Seen) -> Sequence[Record]:
    """Open MPI names the first process of the job that ended so; older versions know its pid."""
    fault = _ended(seen, -(seen.number("NUMBER") or 0), f"mpirun {seen.text.strip()}")
    pid = seen.number("PID") or None
    return [] if fault is None else [_of_rank(seen, msgspec.structs.replace(fault, pid=pid or fault.pid))]


def _caught(seen: Seen) -> Sequence[Record]:
    """The handler of Open MPI inside the process."""
    fault = _ended(seen, -(seen.number("NUMBER") or 0), seen.text.strip())
    return [] if fault is None else [msgspec.structs.replace(fault, pid=seen.number("PID"))]


def _of_rank(seen: Seen, fault: FaultRecord) -> FaultRecord:
    return msgspec.structs.replace(fault, rank=seen.number("RANK"))


_BUILDS = {
    "returned": _returned,
    "signalled": _signalled,
    "runner": _runner,
    "abort": _abort,
    "noticed": _noticed,
    "caught": _caught,
}
WITNESS = Witness(
    name=NAME,
    gates=(
        "exits with return code = ",
        "died with <Signals.SIG",
        "llama runner process has terminated:",
        "MPI_ABORT was invoked on rank ",
        " exited on signal ",
        "] Signal: ",
    ),
    read=read,
    grammar="launchers.lark",
)

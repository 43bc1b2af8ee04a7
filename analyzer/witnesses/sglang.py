"""What SGLang says when a scheduler or another child fails (formats.md 3.12).

The tag stands on the first line only; the traceback below it is given to the same process by
``ingest.owners``, and its error is read by other witnesses.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import Reading, Record
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen, build_fault
from analyzer.witnesses.server_lines import death, read_server, relayed, signal_of_exit

NAME = "sglang"
_OF_VLLM = "WorkerProc"  # vLLM says the same words of it, and reads them itself
_FORMS = (
    Form(rule="hit", begins=r"[A-Za-z_]+ hit an exception: "),
    Form(rule="sigquit", begins=r"Received sigquit from a child|SIGQUIT received\."),
    Form(rule="watchdog", begins=r"(?:[A-Za-z]+ watchdog|Watchdog) timeout \(self"),
    Form(rule="crashed", begins=r"Subprocess \S+ \(pid=[0-9]+\) crashed with exit code"),
)


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_server(frame, fetch, NAME, _FORMS, _BUILDS)


def _hit(seen: Seen) -> Sequence[Record]:
    """The head of a traceback, whose end says what happened."""
    if seen.get("NAME") == _OF_VLLM:
        return []
    return [relayed(seen, NAME, "unknown", f"{seen.get('NAME')} hit an exception")]


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


_BUILDS = {"hit": _hit, "sigquit": _sigquit, "watchdog": _watchdog, "crashed": _crashed}
WITNESS = Witness(
    name=NAME,
    gates=(
        " hit an exception: ",
        "Received sigquit from a child",
        "SIGQUIT received.",
        "atchdog timeout (self",
        " crashed with exit code ",
    ),
    read=read,
    grammar="sglang.lark",
)

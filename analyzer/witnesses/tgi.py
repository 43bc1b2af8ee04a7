"""What the launcher of text-generation-inference says about its shards (formats.md 3.2, 6).

What a dead shard had written stands in one record behind ``Shard complete standard error output:``; its
errors are read by other witnesses, as lines of that rank (``ingest.owners``).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading, Record
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen
from analyzer.witnesses.server_lines import death, read_server, relayed, signal_of_exit

NAME = "tgi"
_FORMS = (
    Form(rule="output", begins=r"Shard complete standard error output:"),
    Form(rule="signaled", begins=r"Shard process was signaled to shutdown with signal"),
    Form(rule="crashed", begins=r"Shard [0-9]+ (?:crashed|failed to start)"),
    Form(rule="error", begins=r"Error: Shard(?:CannotStart|Failed)"),
    Form(rule="transport", begins=r"Server error: transport error"),
)


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_server(frame, fetch, NAME, _FORMS, _BUILDS)


def _output(seen: Seen) -> Sequence[Record]:  # noqa: ARG001  (a head; what follows is the shard's own)
    return []


def _signaled(seen: Seen) -> Sequence[Record]:
    """The launcher saw the signal that ended a shard, and says no more than that."""
    signal = signal_of_exit(-(seen.number("SIGNAL") or 0))
    fault = death(seen, NAME, signal) if signal else relayed(seen, NAME, "host_abort")
    return [_of_rank(msgspec.structs.replace(fault, relayed=True), seen)]


def _crashed(seen: Seen) -> Sequence[Record]:
    return [_of_rank(relayed(seen, NAME, "peer_lost"), seen)]


def _error(seen: Seen) -> Sequence[Record]:
    return [relayed(seen, NAME, "peer_lost")]


def _of_rank(fault: FaultRecord, seen: Seen) -> FaultRecord:
    rank = seen.number("RANK")
    return msgspec.structs.replace(fault, rank=fault.rank if rank is None else rank)


_BUILDS = {
    "output": _output,
    "signaled": _signaled,
    "crashed": _crashed,
    "error": _error,
    "transport": _error,
}
WITNESS = Witness(
    name=NAME,
    program="tgi",
    gates=("Shard ", "Error: ShardCannotStart", "Error: ShardFailed", "Server error: transport error"),
    read=read,
    grammar="tgi.lark",
)

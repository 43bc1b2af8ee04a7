"""What SGLang says when a scheduler or another child fails (formats.md 3.12).

The tag stands on the first line only; the traceback below it is given to the same process by
``ingest.owners``, and its error is read by other witnesses.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analyzer.model import Reading, Record
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen, build_fault
from analyzer.witnesses.server_lines import read_server, relayed

NAME = "sglang"
_FORMS = (
    Form(rule="hit", begins=r"[A-Za-z_]+ hit an exception:"),
    Form(rule="sigquit", begins=r"Received sigquit from a child"),
    Form(rule="watchdog", begins=r"Watchdog timeout \("),
)


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_server(frame, fetch, NAME, _FORMS, _BUILDS)


def _hit(seen: Seen) -> Sequence[Record]:
    """The head of a traceback, whose end says what happened."""
    return [relayed(seen, NAME, "unknown", f"{seen.get('NAME')} hit an exception")]


def _sigquit(seen: Seen) -> Sequence[Record]:
    return [relayed(seen, NAME, "peer_lost")]


def _watchdog(seen: Seen) -> Sequence[Record]:
    """The scheduler made no step for minutes: it hangs, in a collective or in a kernel."""
    return [build_fault(seen, NAME, "hang_timeout", "host", met=True)]


_BUILDS = {"hit": _hit, "sigquit": _sigquit, "watchdog": _watchdog}
WITNESS = Witness(
    name=NAME,
    gates=(
        " hit an exception: ",
        "Received sigquit from a child",
        "Watchdog timeout (self",
    ),
    read=read,
    grammar="sglang.lark",
)

"""Programs that somebody asked to stop: what their processes say of their end is no failure."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from analyzer.incident.incident import Change, Incident, RoleDecision, SetRole
from analyzer.incident.restarts import restart_lines
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, StopRequest

STOPPED = "somebody asked the program to stop"
# Lines with which servers and launchers begin to end in good order. A server whose engine died does so too,
# but it tells of the engine before.
_LITERALS = ("hutting down", "death signal", "SIGTERM", "SIGINT", "signal 15", "signal 2")
_BEGINS = re.compile(
    r"^(?:INFO: +)?Shutting down$|Shutting down FastAPI HTTP server|Engine is gracefully shutting down"
    r"|Received [0-9]+ death signal, shutting down workers"
    r"|(?i:received (?:signal )?(?:SIGTERM|SIGINT|signal 15|signal 2)\b)|SIGTERM received"
)
_UNASKED = "died unexpectedly"
_ASKS = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"})


def asked_to_stop(incident: Incident) -> Iterator[Change]:
    """Nothing is the root where the program was asked to stop, and all that failed is told after that.

    A worker that ended by SIGTERM is no sign of it: servers end their workers so when something failed.
    """
    root, records = incident.root, incident.records
    if root is None or not _is_handed_on(records[root]):
        return
    begin = _begin(incident.known, records[root])
    after = [
        index
        for index, record in enumerate(records)
        if index == root
        or record.relayed
        or record.kind == "peer_lost"
        or incident.roles[index].role == "cascade"
    ]
    source = records[root].source
    if begin is None or not all(_is_after(records[index], source, begin[0]) for index in after):
        return
    reason = f"{STOPPED} (line {begin[0]}: {begin[1]})"
    role = RoleDecision(role="bystander", reason=reason, lines=((source, begin[0]),))
    yield from (SetRole(index=index, role=role) for index in after)


def _is_handed_on(record: FaultRecord) -> bool:
    """Whether a fault only says that a process is gone."""
    return record.kind == "peer_lost" and (record.relayed or record.met or record.teardown)


def _is_after(record: FaultRecord, source: int, line: int) -> bool:
    return record.source == source and record.line >= line and _is_handed_on(record)


def _begin(known: Knowledge, root: FaultRecord) -> tuple[int, str] | None:
    """Line and text of the first sign in the last run that it was asked to stop; null = there is none."""
    rows = known.readers[root.source].matching([*_LITERALS, _UNASKED])
    begins = [
        (line, text.strip())
        for line, text in rows.select("line", "text").iter_rows()
        if _BEGINS.search(text.strip())
    ]
    begins += [(r.line, r.text) for r in known.records if r.source == root.source and _is_request(r)]
    last = [line for source, line in restart_lines(known) if source == root.source and line <= root.line]
    first = min((begin for begin in begins if begin[0] >= max(last, default=0)), default=None)
    unasked = rows.filter(pl.col("text").str.contains(_UNASKED, literal=True))["line"].min()
    return None if first is None or (unasked is not None and unasked < first[0]) else first


def _is_request(record: FaultRecord) -> bool:
    """A fault that tells of the request itself: of the launcher, of Slurm, of the container as a whole."""
    asked = record.detail
    return isinstance(asked, StopRequest) and (asked.signal is None or asked.signal in _ASKS)

"""Gloo, and the store of c10d over which ranks find one another: their sockets tell of another rank.

Who reads ``Connection closed by peer`` did not fail: the peer went first, and why stands in its own log.
A time-out says that a peer did not come, not whether it hangs, is gone or never started.
"""

from __future__ import annotations

from itertools import takewhile

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading
from analyzer.schema import FaultKind, SourceFrame
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import (
    FETCHED,
    Form,
    Seen,
    build_fault,
    flat,
    place_of,
    read_forms,
    with_traceback,
)
from analyzer.witnesses.server_lines import settled

NAME = "gloo"
_SOCKET = "Connection reset by peer|Connection closed by peer|Broken pipe|Socket Timeout"
_FORMS = (
    Form(rule="gloo", begins=r"\[(?:enforce fail at )?[^\s\[\]]*gloo/[a-z_/]+\.[a-z]+:[0-9]+\]"),
    # "failed to connect to [host]:port" is a warning about one address of several: the next one is tried.
    Form(
        rule="client",
        begins=r"The client socket has (?:timed out after|failed to connect to any network address)",
    ),
    Form(rule="server", begins=r"The server socket has failed to listen on any local network address"),
    Form(rule="clients", begins=r"Timed out after [0-9]+ seconds waiting for clients"),
    Form(rule="keys", begins=r"wait timeout after [0-9]+ms, keys:"),
    Form(rule="bytes", begins=r"(?:send|recv)[A-Za-z]* failed on SocketImpl\("),
    Form(rule="error", begins=rf"(?:Dist(?:Network|Store)Error|^RuntimeError): (?:{_SOCKET})"),
)
# What Gloo says behind the place of its code. The first that fits.
_SAID: tuple[tuple[str, FaultKind], ...] = (
    ("onnection closed by peer", "peer_lost"),
    ("onnection reset by peer", "peer_lost"),
    ("roken pipe", "peer_lost"),
    ("onnection refused", "peer_lost"),
    ("ocket closed", "peer_lost"),
    ("pplication timeout", "hang_timeout"),
    ("imed out", "hang_timeout"),
    ("imeout", "hang_timeout"),
    ("Unable to find address", "configuration"),
    ("nable to resolve", "configuration"),
    ("ddress already in use", "configuration"),
    ("Read error", "peer_lost"),
    ("Write error", "peer_lost"),
)
_KINDS: dict[str, FaultKind] = {
    "client": "peer_lost",  # the store is served by rank 0
    "server": "configuration",
    "clients": "hang_timeout",
    "keys": "hang_timeout",
    "bytes": "peer_lost",
    "error": "peer_lost",
}
_ELSEWHERE = frozenset({"peer_lost", "hang_timeout"})
_OTHER_RANK = "the peer failed first or never came: its own log says why"
_BODY = ("Exception raised from ", "frame #")
_BODY_LINES = 60


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses, reading = Losses(NAME), Reading()
    for at, seen in enumerate(read_forms(frame, NAME, _FORMS, losses)):
        reading.parsed.extend(seen.lines)
        fault = _fault(seen)
        if at < FETCHED:
            fault, used = _with_surroundings(fault, fetch)
            reading.continuation.extend(used)
        reading.records.append(fault)
    return settled(reading, frame, losses)


def _fault(seen: Seen) -> FaultRecord:
    """A lost peer, unless the text tells of something else.

    The heartbeat of the store complains as well when another rank has ended in good order, just before its
    own process does: that is the last thing to believe.
    """
    kind = _kind(seen)
    warns = seen.rule == "bytes"
    fault = build_fault(seen, NAME, kind, "host", met=kind in _ELSEWHERE, teardown=warns)
    text = f"{fault.text} ({_OTHER_RANK})" if kind in _ELSEWHERE else fault.text
    return msgspec.structs.replace(fault, text=text, location=_place(seen))


def _kind(seen: Seen) -> FaultKind:
    said = seen.get("SAID") or ""
    if seen.rule == "gloo":
        return next((kind for words, kind in _SAID if words in said), "unknown")
    return "hang_timeout" if said.startswith("Socket Timeout") else _KINDS[seen.rule]


def _place(seen: Seen) -> SourceFrame | None:
    """The line of Gloo's code."""
    file, _, line = (seen.get("FILE") or "").rpartition(":")
    return place_of(file, line)


def _with_surroundings(fault: FaultRecord, fetch: Fetch) -> tuple[FaultRecord, set[int]]:
    """The traceback above, and the C++ frames below."""
    fault, used = with_traceback(fault, fetch)
    after = flat(fetch.after(fault.line, fault.process, _BODY_LINES))
    used |= {number for number, _ in takewhile(lambda line: line[1].startswith(_BODY), after)}
    return msgspec.structs.replace(fault, last_line=max([fault.last_line, *used])), used


WITNESS = Witness(
    name=NAME,
    program="gloo",
    gates=(
        "gloo/transport/",
        "gloo/rendezvous/",
        "gloo/common/",
        "The client socket has ",
        "The server socket has failed to listen",
        " seconds waiting for clients",
        "wait timeout after ",
        " failed on SocketImpl(",
        *(
            f"{name}Error: {words}"
            for name in ("Network", "Store", "Runtime")
            for words in _SOCKET.split("|")
        ),
    ),
    read=read,
    grammar="gloo.lark",
)

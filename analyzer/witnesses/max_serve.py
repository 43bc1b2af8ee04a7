"""What the API server of MAX says about its model worker (formats.md 3.10, 11.6).

It knows how the worker ended, never why. A worker that compiles, or that writes a TRACE log, misses its
heartbeat without having failed: that kill looks like a crash.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import Advice, FaultRecord, Reading, Record
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen, build_fault
from analyzer.witnesses.server_lines import death, read_server, relayed, signal_of_words

NAME = "max_serve"
_HEARTBEAT = "failed heartbeat check"
_UNREADY = "failed to become ready"
_COMPILING = "Still compiling model ("
_FORMS = (
    Form(rule="compiling", begins=r"Still compiling model \("),
    Form(rule="worker", begins=r"Worker exception, [Ss]hutting down"),
    Form(rule="exited", begins=r"SubprocessExit: "),
    Form(
        rule="unhealthy",
        begins=r"(?:Model Worker|[A-Z][\w-]*) failed heartbeat check|Model worker process is not healthy",
    ),
    Form(rule="unready", begins=r"Model [Ww]orker (?:failed to become ready|never became healthy)"),
    Form(rule="stuck", begins=r"subprocess .* would not die"),
)
_NEAR = 400  # lines between the last sign of the compiler and the heartbeat that was missed


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    reading = read_server(frame, fetch, NAME, _FORMS, _BUILDS)
    beats = frame.filter(pl.col("text").str.contains(_COMPILING, literal=True))["line"].to_list()
    reading.records = [_while_compiling(record, beats) for record in reading.records]
    return reading


def _while_compiling(record: Record, beats: Sequence[int]) -> Record:
    """A heartbeat missed while the model compiled: no crash, the server lost patience."""
    if not isinstance(record, FaultRecord) or record.kind != "hang_timeout":
        return record
    near = [line for line in beats if record.line - _NEAR <= line < record.line]
    if not near:
        return record
    text = f"{record.text} (it was still compiling at line {near[-1]}: busy is not broken)"
    return msgspec.structs.replace(record, text=text)


def _worker(seen: Seen) -> Sequence[Record]:
    """``Worker exception, shutting down: <how the worker ended>``."""
    why = (seen.get("WHY") or "").strip()
    if _HEARTBEAT in why:
        return [_handed_on(build_fault(seen, NAME, "hang_timeout", "host"))]
    signal = signal_of_words(why)
    if signal is not None:
        return [_handed_on(death(seen, NAME, signal))]
    return [relayed(seen, NAME, "hang_timeout" if _UNREADY in why else "peer_lost")]


def _unhealthy(seen: Seen) -> Sequence[Record]:
    return [_handed_on(build_fault(seen, NAME, "hang_timeout", "host"))]


def _handed_on(fault: FaultRecord) -> FaultRecord:
    return msgspec.structs.replace(fault, relayed=True)


def _compiling(seen: Seen) -> Sequence[Record]:  # noqa: ARG001  (a sign of life)
    return []


def _stuck(seen: Seen) -> Sequence[Record]:
    text = "a worker that does not die holds the GPU: look for its process before the next start"
    return [Advice(source=seen.source, line=seen.line, text=text)]


_BUILDS = {
    "compiling": _compiling,
    "worker": _worker,
    "exited": _worker,
    "unhealthy": _unhealthy,
    "unready": _unhealthy,
    "stuck": _stuck,
}
WITNESS = Witness(
    name=NAME,
    program="max",
    gates=(
        "Worker exception, ",
        "SubprocessExit: ",
        _HEARTBEAT,
        "Model Worker failed to become ready",
        "Model worker never became healthy",
        "Model worker process is not healthy",
        "Still compiling model (",
        " would not die",
    ),
    read=read,
    grammar="max_serve.lark",
)

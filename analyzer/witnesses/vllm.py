"""What vLLM says when its engine fails: who died, and what was in the batch (formats.md 3.11).

The error itself stands in the engine's or the worker's process and is read by other witnesses. Everything
here hands it on, save the time-out of a call into the engine.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import Advice, FaultRecord, Reading, Record, ScheduledRequest, ServerState
from analyzer.numbers import integer, need_integer, need_real
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.forms import Form, Seen, build_fault
from analyzer.witnesses.server_lines import announced, death, read_server, relayed, signal_of_exit

NAME = "vllm"
_FORMS = (
    Form(rule="scheduled", begins=r"num_scheduled_tokens=\{"),
    Form(rule="stats", begins=r"SchedulerStats\("),
    Form(rule="failed_procs", begins=r"Engine core initialization failed\."),
    Form(
        rule="dead",
        begins=r"\b[A-Za-z]*EngineDeadError: |MQEngineDeadError\(|EngineCore encountered an issue\.",
    ),
    Form(
        rule="announced",
        begins=r"EngineCore (?:encountered a fatal error|failed to start|hit an exception)"
        r"|WorkerProc (?:hit an exception|failed to start|initialization failed)",
    ),
    Form(
        rule="server",
        begins=r"AsyncLLM output_handler failed|Engine background task failed"
        r"|Background loop has errored already",
    ),
    Form(rule="died", begins=r"Worker (?:proc )?[A-Za-z_][\w-]* (?:pid [0-9]+ )?died"),
    Form(rule="gone", begins=r"Engine core proc \S+ died unexpectedly"),
    Form(rule="timed_out", begins=r"RPC call to [A-Za-z_]+ timed out"),
    Form(
        rule="written",
        begins=r"(?:Completed w|W)riting input of failed execution to "
        r"|input dumped to [^ ]*err_execute_model",
    ),
    Form(rule="dumping", begins=r"Dumping input data"),
)
_ENGINE = "the engine of this API server died"
# The monitor of the client also prints it when the engine was asked to end and the client was not.
_GONE = (
    "the engine process is gone; also printed when it was asked to stop (SIGTERM, Ctrl-C, end of the script)"
)
_STOPPED = (
    "KeyboardInterrupt",
    "SIGTERM",
    "SIGINT",
    "received signal 15",
    "received signal 2",
    "Shutting down",
    "Application shutdown complete",
    "Finished server process",
)
_LOAD = (
    ("num_running_reqs", "{} requests were running"),
    ("num_waiting_reqs", "{} waiting"),
    ("kv_cache_usage", "KV cache {} full"),
    ("gpu_cache_usage", "KV cache {} full"),
)


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    reading = read_server(frame, fetch, NAME, _FORMS, _BUILDS)
    gone = [one for one in reading.records if isinstance(one, FaultRecord) and _GONE in one.text]
    if gone and (stopped := _first_stop(fetch)) is not None:
        asked = [one for one in gone if one.line > stopped]
        reading.records = [one for one in reading.records if one not in asked]
    return reading


def _first_stop(fetch: Fetch) -> int | None:
    """The line in which somebody asks the server to stop; null = none."""
    lines = fetch.matching(_STOPPED)["line"]
    return int(lines[0]) if lines.len() else None


def _dead(seen: Seen) -> Sequence[Record]:
    return [relayed(seen, NAME, "peer_lost", f"{seen.text.strip()} ({_ENGINE})")]


def _server(seen: Seen) -> Sequence[Record]:
    return [relayed(seen, NAME, "peer_lost")]


def _announced(seen: Seen) -> Sequence[Record]:
    return [announced(seen, NAME)]


def _failed_procs(seen: Seen) -> Sequence[Record]:
    """``Failed core proc(s): {'EngineCore_DP0': -4}`` tells the signal of an engine that said nothing."""
    signals = [
        signal for text in seen.fields.get("EXIT", []) if (signal := signal_of_exit(need_integer(text)))
    ]
    fault = relayed(seen, NAME, "peer_lost")
    if signals:
        fault = msgspec.structs.replace(death(seen, NAME, signals[0]), relayed=True)
    return [fault]


def _died(seen: Seen) -> Sequence[Record]:
    exit_code = seen.get("EXIT")
    signal = signal_of_exit(need_integer(exit_code)) if exit_code else None
    pid = seen.number("PID")
    fault = death(seen, NAME, signal) if signal else relayed(seen, NAME, "peer_lost")
    return [msgspec.structs.replace(fault, relayed=True, pid=pid or fault.pid)]


def _gone(seen: Seen) -> Sequence[Record]:
    return [relayed(seen, NAME, "peer_lost", f"{seen.text.strip()} ({_GONE})")]


def _timed_out(seen: Seen) -> Sequence[Record]:
    """The engine waits for a worker that hangs or is gone; it cannot tell which (formats.md 9, row 31)."""
    return [build_fault(seen, NAME, "hang_timeout", "host", met=True)]


def _scheduled(seen: Seen) -> Sequence[Record]:
    ids, tokens = seen.fields.get("ID", []), seen.fields.get("TOKENS", [])
    return [
        ScheduledRequest(
            source=seen.source,
            line=seen.line,
            request_id=name.strip().strip("'"),
            tokens=integer(tokens[at]) if at < len(tokens) else None,
        )
        for at, name in enumerate(ids)
    ]


def _stats(seen: Seen) -> Sequence[Record]:
    """``8 requests were running, 0 waiting, KV cache 13.0% full``."""
    told = dict(field.split("=", 1) for field in seen.fields.get("FIELD", []))
    words = [
        form.format(f"{need_real(told[name]):.1%}" if name.endswith("usage") else told[name])
        for name, form in _LOAD
        if name in told
    ]
    return [ServerState(source=seen.source, line=seen.line, text=", ".join(words))] if words else []


def _written(seen: Seen) -> Sequence[Record]:
    path = (seen.get("PATH") or "").rstrip(".")
    text = f"vLLM wrote the input of the failing step to {path}"
    return [Advice(source=seen.source, line=seen.line, text=text)]


def _nothing(seen: Seen) -> Sequence[FaultRecord]:  # noqa: ARG001  (understood, and nothing for us)
    return []


_BUILDS = {
    "dead": _dead,
    "server": _server,
    "announced": _announced,
    "failed_procs": _failed_procs,
    "died": _died,
    "gone": _gone,
    "timed_out": _timed_out,
    "scheduled": _scheduled,
    "stats": _stats,
    "written": _written,
    "dumping": _nothing,
}
WITNESS = Witness(
    name=NAME,
    program="vllm",
    gates=(
        "EngineDeadError",
        "EngineCore encountered a",
        "EngineCore failed to start",
        "EngineCore hit an exception",
        "AsyncLLM output_handler failed",
        "Engine background task failed",
        "Background loop has errored",
        "Engine core initialization failed",
        "WorkerProc hit an exception",
        "WorkerProc failed to start",
        "WorkerProc initialization failed",
        "shutting down executor",
        " died, exit code: ",
        "Engine core proc ",
        "RPC call to ",
        "num_scheduled_tokens=",
        "SchedulerStats(",
        "Dumping input data",
        "err_execute_model_input",
    ),
    read=read,
    grammar="vllm.lark",
)

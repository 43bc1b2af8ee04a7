"""JAX, XLA and TensorFlow (formats.md 3.14): errors that a later call met, and what the teardown prints.

The kernel of ``Failed to launch CUDA kernel: X`` is the next one: its launch call returned the older error.
"""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.model import FaultRecord, FaultSite, Reading
from analyzer.numbers import natural
from analyzer.schema import FaultKind
from analyzer.tables.codes import ErrorCode, by_code
from analyzer.tables.known_text import by_text_start
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault, error_code, read_forms, with_traceback

NAME = "xla"
_MEMORY = "RESOURCE_EXHAUSTED"  # another witness reads these as out of memory
_REFUSED = (
    "CUDA_ERROR_OUT_OF_MEMORY"  # its allocator then asks for less; if that fails, RESOURCE_EXHAUSTED follows
)
_FORMS = (
    Form(rule="raised", begins="(?:Xla|Jax)RuntimeError: "),
    Form(rule="replica", begins="Execution of replica [0-9]+ failed: "),
    Form(
        rule="teardown",
        begins="failed to free (?:device|host|unified) memory at|failed to unload module"
        "|[Ee]rror polling for event status|unable to add host callback"
        "|Deallocating stream with pending work|error destroying CUDA event",
    ),
    Form(rule="event", begins="Unexpected Event status: "),
    Form(rule="launch", begins="[Ff]ailed to launch (?:CUDA|ROCm) kernel: "),
    Form(
        rule="wait",
        begins="[Cc]ould not synchronize (?:CUDA stream|on CUDA context)"
        "|Failed to retrieve [A-Za-z_ ]+ on stream|failed to synchronize the stop event",
    ),
    Form(rule="status", begins="CUDA error: (?:[^:]*: )?CUDA_ERROR_[A-Z_]+: "),  # what ``ToStatus`` makes
    Form(
        rule="call",
        begins="(?:[Ff]ailed to|[Cc]ould not|[Uu]nable to|Error) [a-z][^:]*: "
        "(?:[A-Za-z][^:]*: )?CUDA_ERROR_[A-Z_]+: ",
    ),
)
# What a status means where no CUDA error is in the text.
_STATUSES: dict[str, FaultKind] = {
    "INVALID_ARGUMENT": "invalid_argument",
    "FAILED_PRECONDITION": "configuration",
    "UNIMPLEMENTED": "configuration",
    "DEADLINE_EXCEEDED": "hang_timeout",
    "UNAVAILABLE": "peer_lost",
}


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses = Losses(NAME)
    reading = Reading()
    for at, one in enumerate(read_forms(frame, NAME, _FORMS, losses)):
        if one.get("STATUS") == _MEMORY:
            reading.not_mine.extend(one.lines)
            continue
        reading.parsed.extend(one.lines)
        if one.rule == "call" and one.get("NAME") == _REFUSED:
            continue
        fault = _fault(one)
        if one.rule == "raised" and at < FETCHED:
            fault, used = with_traceback(fault, fetch)
            reading.continuation.extend(used)
        reading.records.append(fault)
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    return reading


def _fault(one: Seen) -> FaultRecord:
    name, kernel = one.get("NAME"), one.get("KERNEL")
    words = one.get("WORDS")
    if kernel is not None and by_text_start(kernel) is not None:  # other programs name no kernel here
        kernel, words = None, kernel
    hip = one.get("HIP_CODE")
    known = error_code(name, None, words) or _of_hip(hip)
    fault = build_fault(
        one,
        NAME,
        known.kind if known is not None else _kind_of_status(one),
        _site(one),
        code=known,
        name=name,
        vendor="amd" if hip else "nvidia" if name or known else None,
        teardown=one.rule in {"teardown", "event"},
    )
    return msgspec.structs.replace(fault, kernel=kernel)


def _of_hip(code: str | None) -> ErrorCode | None:
    """``hipError_t(98)``: XLA has no names for what HIP returns; null = no number."""
    number = (code or "").partition("(")[2].rstrip(")")
    known = natural(number)
    return None if known is None else by_code(known)


def _kind_of_status(one: Seen) -> FaultKind:
    """What a text without a known error is about."""
    if one.get("NAME") is not None or one.rule != "raised":
        return _STATUSES.get(one.get("STATUS") or "", "unknown")
    return _STATUSES.get(one.get("STATUS") or "", "library_status")


def _site(one: Seen) -> FaultSite:
    """A launch call, a wait, or the host's own complaint."""
    if one.get("KERNEL") is not None:
        return "launch"
    return "sync" if one.get("NAME") is not None or one.get("WORDS") is not None else "host"


WITNESS = Witness(
    name=NAME,
    program="jax",
    gates=(
        "XlaRuntimeError: ",
        "JaxRuntimeError: ",
        "Execution of replica ",
        "ailed to launch CUDA kernel: ",
        "ailed to launch ROCm kernel: ",
        "Failed to retrieve branch_index",
        "ould not synchronize CUDA stream",
        "ould not synchronize on CUDA context",
        "failed to synchronize the stop event",
        "failed to free device memory",
        "failed to unload module",
        "rror polling for event status",
        "Unexpected Event status: ",
        "unable to add host callback",
        "Deallocating stream with pending work",
        "error destroying CUDA event",
        ": CUDA_ERROR_",
    ),
    read=read,
    grammar="xla.lark",
)

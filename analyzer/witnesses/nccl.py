"""NCCL: its warnings, and the results that its callers print (formats.md 3.7).

NCCL only looks: ``Cuda failure`` is somebody else's fault, and ``remote process exited`` says that another
rank died first. Warnings about anything else than a failure are understood and give no fault.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading
from analyzer.numbers import natural
from analyzer.schema import FaultKind
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import (
    FETCHED,
    LONG_NUMBER,
    Form,
    Seen,
    build_fault,
    error_code,
    flat,
    read_forms,
    read_line,
    with_traceback,
)

NAME = "nccl"
_AFTER_LINES = 8
_THREAD = r"(^[A-Za-z0-9_.\-]+:[0-9]+:)[0-9]+"  # host and pid tell processes apart
_FORMS = (
    Form(
        rule="warn",
        begins=r"[A-Za-z0-9_.\-]+:[0-9]+:[0-9]+ \[-?[0-9]+\] "
        r"(?:[A-Za-z0-9_./\-]+:[0-9]+ )?(?:\([^()]*\) )?NCCL WARN ",
    ),
    Form(rule="warn", begins="NCCL WARN "),
    Form(rule="error", begins="NCCL error(?: in)?: "),
)
_RESULTS: tuple[tuple[str, FaultKind, bool], ...] = (  # words, kind, whether NCCL only met it
    ("remote process exited", "peer_lost", False),
    ("remote error", "peer_lost", False),
    ("unhandled", "library_status", True),
    ("internal error", "library_status", True),
    ("invalid argument", "invalid_argument", False),
    ("invalid usage", "configuration", False),
    ("timeout", "hang_timeout", False),
)
# What a warning is about, by words of it. The first that fits.
_WARNINGS: tuple[tuple[str, FaultKind], ...] = (
    ("Connection closed by remote peer", "peer_lost"),
    ("Connection reset by peer", "peer_lost"),
    ("Broken pipe", "peer_lost"),
    ("Connection refused", "peer_lost"),
    ("Connection timed out", "peer_lost"),
    ("Got completion from peer", "peer_lost"),
    ("Duplicate GPU detected", "configuration"),
    ("no socket interface found", "configuration"),
    ("Mismatched collective", "configuration"),
    ("collective mismatch error", "configuration"),
    ("GPU is lost", "device_lost"),
    ("shared memory segment", "configuration"),  # /dev/shm of the container is too small or full
)
_MEMORY = ("Failed to CUDA ", "Failed to HIP ")  # another witness reads these as out of memory
_CONTINUES = ("nccl", "Last error:")


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses = Losses(NAME)
    reading = Reading()
    seen = read_forms(frame, NAME, _FORMS, losses, blank=(_THREAD, LONG_NUMBER))
    for at, one in enumerate(seen):
        message = one.get("MESSAGE") or ""
        if message.startswith(_MEMORY):
            reading.not_mine.extend(one.lines)
            continue
        reading.parsed.extend(one.lines)
        fault = _warning(one, message) if one.rule == "warn" else _result(one)
        if fault is None:
            continue
        if at < FETCHED and one.rule == "error":
            fault, used = _with_surroundings(fault, fetch)
            reading.continuation.extend(used)
        reading.records.append(fault)
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    return reading


def _warning(one: Seen, message: str) -> FaultRecord | None:
    """A failed CUDA call or a dead peer; null = a warning that tells of no failure."""
    words = one.get("WORDS")
    if words is not None:
        return _cuda_failure(one, words)
    kind = next((kind for word, kind in _WARNINGS if word in message), None)
    if kind is None:
        return None
    return build_fault(one, NAME, kind, "host", met=kind == "peer_lost")


def _cuda_failure(one: Seen, words: str) -> FaultRecord:
    number = one.number("INT")
    known = error_code(None, number, words.strip("'"))
    vendor = "amd" if one.get("API") == "HIP" else "nvidia"
    kind: FaultKind = known.kind if known else "unknown"
    fault = build_fault(one, NAME, kind, "sync", code=known, vendor=vendor, met=True)
    writer = one.get("WRITER") or ""
    return msgspec.structs.replace(fault, device=_device(writer), pid=_pid(writer))


def _device(writer: str) -> str | None:
    """The CUDA device in ``host:pid:tid [1] ...``; -1 = the thread serves none."""
    number = writer.partition("[")[2].partition("]")[0]
    return None if natural(number) is None else f"gpu:{number}"


def _pid(writer: str) -> int | None:
    number = writer.partition(" ")[0].split(":")[1:2]
    return natural(number[0]) if number else None


def _result(one: Seen) -> FaultRecord:
    words = one.get("RESULT") or ""
    kind, met = next(
        ((kind, met) for word, kind, met in _RESULTS if words.startswith(word)), ("unknown", True)
    )
    return build_fault(one, NAME, kind, "sync" if met else "host", name=_result_name(words), met=met)


def _result_name(words: str) -> str:
    """``ncclUnhandledCudaError`` for ``unhandled cuda error (run with ...)``."""
    plain = words.partition(" (")[0].partition(" - ")[0]
    if plain.startswith("remote process"):
        return "ncclRemoteError"
    return "nccl" + "".join(word.capitalize() for word in plain.split())


def _with_surroundings(fault: FaultRecord, fetch: Fetch) -> tuple[FaultRecord, set[int]]:
    """The traceback before, and what ``Last error:`` says after: it can name the CUDA error that NCCL met."""
    fault, used = with_traceback(fault, fetch)
    lines = flat(fetch.after(fault.line, fault.process, _AFTER_LINES))
    taken = _continuation(lines)
    used |= {number for number, _ in lines[:taken]}
    last = next((text for _, text in lines[:taken] if "failure" in text), None)
    reason = next((kind for word, kind in _WARNINGS for _, text in lines[:taken] if word in text), None)
    if reason is not None and fault.kind == "library_status":
        fault = msgspec.structs.replace(fault, kind=reason, site="host", met=reason == "peer_lost")
    fields = read_line(NAME, "warn", f"NCCL WARN {last.strip()}") if last else None
    known = None
    if fields and "WORDS" in fields:
        known = error_code(None, natural(fields.get("INT", ["0"])[0]) or None, fields["WORDS"][0].strip("'"))
    if known is not None:
        fault = msgspec.structs.replace(fault, kind=known.kind, code=known.code, met=True)
    return msgspec.structs.replace(fault, last_line=max([fault.last_line, *used])), used


def _continuation(lines: Sequence[tuple[int, str]]) -> int:
    """How many of the lines go on: ``ncclRemoteError: ...``, ``Last error:`` and the line after it."""
    taken = 0
    for at, (_, text) in enumerate(lines):
        if text.strip().startswith(_CONTINUES):
            taken = at + 1
            if text.strip() == "Last error:":
                return min(taken + 1, len(lines))
        elif text.strip():
            break
    return taken


WITNESS = Witness(
    name=NAME,
    program="nccl",
    collective=True,
    gates=("NCCL WARN ", "NCCL error"),
    read=read,
    grammar="nccl.lark",
)

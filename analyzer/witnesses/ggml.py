"""llama.cpp, ggml and ollama (formats.md 3.15).

The error is told over four lines; only ggml prints ``current device``. Its function is the one that checked:
a synchronisation met what an earlier op did. ik_llama prints a ring of the last calls.
"""

from __future__ import annotations

import re

import msgspec
import polars as pl

from analyzer.model import FaultRecord, FaultSite, Line, Reading
from analyzer.numbers import need_integer
from analyzer.parse.c10_text import split_place
from analyzer.schema import FaultKind
from analyzer.tables.codes import ErrorCode
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.calls import site_of_call
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import (
    Fields,
    Form,
    Seen,
    build_fault,
    device_of,
    error_code,
    read_forms,
    read_line,
)

NAME = "ggml"
_DEVICE = "current device: "  # others say so too, but not ", in function"
FETCHED = 24
_BEFORE_LINES, _AFTER_LINES = 6, 64
_CALLS_SHOWN = 5
_LIBRARY = re.compile("[A-Z]+_STATUS_")  # of cuBLAS: the line itself is read by cuda_libraries
_VENDORS = {"CUDA": "nvidia", "ROCm": "amd", "HIP": "amd"}
_FORMS = (
    Form(rule="device", begins="current device: -?[0-9]+, in function "),
    Form(rule="trace", begins="CUDA trace: "),
    Form(rule="old_assert", begins="GGML_ASSERT: "),
    Form(rule="assert", begins=r"(?:[A-Za-z]:)?[^\s:]+:[0-9]+: GGML_ASSERT\("),
    Form(
        rule="metal",
        begins=r"[A-Z][^:(]*(?:\([^()]*\) ?)?\([0-9a-f]{8}:kIO[A-Za-z]*CommandBufferCallbackError",
    ),
    Form(rule="numbered", begins=r"CUDA error [0-9]+ at [^\s:\[]+:[0-9]+: "),
)


# What Metal says of a command buffer; all others only met what an earlier one did.
_METAL: dict[str, FaultKind] = {
    "OutOfMemory": "out_of_memory",
    "PageFault": "illegal_address",
    "Hang": "hang_timeout",
    "Timeout": "hang_timeout",
}


class _Around(msgspec.Struct):
    """The other lines of an error. ``message``: number and tokens of ``CUDA error: ...``."""

    message: tuple[Line, Fields] | None = None
    expression: str = ""
    calls: dict[int, str] = {}
    used: set[int] = set()


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses = Losses(NAME)
    reading = Reading()
    at = 0
    for one in read_forms(frame, NAME, _FORMS, losses):
        reading.parsed.extend(one.lines)
        if one.rule == "trace" or _is_echo(one):
            continue
        at += 1
        around = _look_around(one, fetch) if one.rule == "device" and at <= FETCHED else _Around()
        reading.continuation.extend(around.used)
        reading.continuation.extend(_repeated(one, around))
        reading.records.append(_fault(one, around))
    reading.records.sort(key=lambda record: record.line)
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    known = {*reading.parsed, *reading.continuation, *(loss.line for loss in reading.losses)}
    foreign = frame.filter(pl.col("text").str.contains(_DEVICE, literal=True))["line"].to_list()
    reading.not_mine = sorted(set(foreign) - known)
    return reading


def _is_echo(one: Seen) -> bool:
    """``GGML_ASSERT: file: !"CUDA error"`` ends the error that was told just before."""
    return one.rule == "old_assert" and "CUDA error" in (one.get("EXPRESSION") or "")


def _look_around(one: Seen, fetch: Fetch) -> _Around:
    """The message above, the failed expression and the ring of calls below."""
    around = _Around()
    for line in reversed(fetch.before(one.line, one.process, _BEFORE_LINES)):
        text = line.text.strip()
        message = (
            read_line(NAME, "message", text[max(0, _error_at(text)) :]) if _error_at(text) >= 0 else None
        )
        place = read_line(NAME, "place", text) if text.endswith(" error") else None
        if message is not None and around.message is None:
            around.message = (line, message)
        elif place is None:
            break
        around.used.add(line.number)
    for line in fetch.after(one.line, one.process, _AFTER_LINES):
        if not _take_after(around, line):
            break
    return around


def _repeated(one: Seen, around: _Around) -> list[int]:
    """The lines of the message of later repeats: they stand as far above as that of the first."""
    if around.message is None:
        return []
    above = one.line - around.message[0].number
    return [number - above for number in one.lines[1:]]


def _error_at(text: str) -> int:
    return next(
        (at for word in ("CUDA error: ", "ROCm error: ", "MUSA error: ") if (at := text.find(word)) >= 0), -1
    )


def _take_after(around: _Around, line: Line) -> bool:
    """The expression is the first line after; the ring of calls may follow."""
    text = line.text.strip()
    if _DEVICE in text:
        return False
    if not around.expression:
        around.expression = text
    elif text.startswith("CUDA trace: "):
        pass
    elif (fields := read_line(NAME, "call", text)) is not None:
        around.calls[need_integer(fields["INT"][0])] = (
            f"{fields['FUNCTION'][0]} ({fields['FILE'][0]}:{fields['LINE'][0]})"
        )
    elif not text or text.startswith(("/", "./", "GGML_ASSERT", "lib", "Could not attach", "ptrace")):
        return not around.calls
    else:
        return False
    around.used.add(line.number)
    return True


def _fault(one: Seen, around: _Around) -> FaultRecord:
    message = around.message[1] if around.message else one.fields
    words = message.get("WORDS", [""])[0]
    api = message.get("API", ["CUDA"])[0]
    known = error_code(None, one.number("INT") if one.rule == "numbered" else None, words)
    vendor = _VENDORS.get(api)
    fault = build_fault(
        one, NAME, _kind(one, known, words), _site(one, known, around), code=known, vendor=vendor
    )
    place, function = one.get("PLACE"), one.get("FUNCTION") or ""
    fault = msgspec.structs.replace(
        fault,
        location=split_place(place, function) if place else None,
        device=device_of(one.get("INT")) if one.rule == "device" else None,
        text=_text(one, words, api, around),
        last_line=max([fault.last_line, *around.used]),
        block_first=min([fault.line, *around.used]),
    )
    if around.message is not None:
        fault = msgspec.structs.replace(fault, line=around.message[0].number)
    return fault


def _kind(one: Seen, known: ErrorCode | None, words: str) -> FaultKind:
    if one.rule in {"assert", "old_assert"}:
        return "host_abort"
    if one.rule == "metal":
        return _METAL.get((one.get("STATUS") or "").rpartition("CallbackError")[2], "unknown")
    return known.kind if known else "library_status" if _LIBRARY.match(words) else "unknown"


def _site(one: Seen, known: ErrorCode | None, around: _Around) -> FaultSite:
    """A check after a launch is that op's, or an older error; every other function only met it."""
    if one.rule in {"assert", "old_assert"} or (known is not None and known.site == "A"):
        return "host"
    if one.rule == "metal" and _kind(one, known, "") == "out_of_memory":
        return "host"
    return site_of_call(around.expression) if around.expression else "unknown"


def _text(one: Seen, words: str, api: str, around: _Around) -> str:
    if one.rule != "device":
        return one.text.strip()
    text = f"{api} error: {words}" if words else "CUDA error"
    text += f" in {one.get('FUNCTION')} at {one.get('PLACE')}"
    text += f": {around.expression}" if around.expression else ""
    if around.calls:
        last = [around.calls[number] for number in sorted(around.calls)[-_CALLS_SHOWN:]]
        text += f" (the last calls before it: {', '.join(last)})"
    return text


WITNESS = Witness(
    name=NAME,
    program="llama.cpp",
    gates=(_DEVICE, "CUDA trace: ", "GGML_ASSERT", "at ggml-cuda", "CommandBufferCallbackError"),
    read=read,
    grammar="ggml.lark",
)

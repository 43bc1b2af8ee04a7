"""Errors of PyTorch's own CUDA and HIP checks, in Python and in C++ (formats.md 3.1, observed.md 21-22)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import GrammarError
from analyzer.model import FaultRecord, FaultSite, ModeRecord, Reading, Record
from analyzer.parse.c10_text import (
    ANCIENT,
    CHECKS,
    DRIVER,
    TERMINATE,
    THC,
    WARNINGS,
    WATCHDOG,
    Body,
    Head,
    read_body,
    read_head,
    split_place,
)
from analyzer.speech.explained import goes_on, is_explained
from analyzer.tables.codes import CODES, ErrorCode, by_name, by_text, vendor_of
from analyzer.tables.known_text import by_text_start
from analyzer.tables.report_sites import WAIT
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Told
from analyzer.witnesses.host_error import Around, fault_of, gates_of_others, read_host_errors

NAME = "c10"
_WHAT = "what():"
_RAISED = ("Error: ", "Exception: ", _WHAT, "DeferredCudaCallError: ")
_WORDS = {"CUDA": "nvidia", "HIP": "amd"}
_GGML = "current device:"  # the line after "CUDA error: ..." of llama.cpp (formats.md 3.15)
_DRIVER_OOM = " (the driver refused: memory of graphs or handles, another process, or pinned host memory)"
_NEAR = 3  # lines between "terminate called" and its what()


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    reading = read_host_errors(frame, fetch, NAME, _read_line, _build)
    texts = frame["text"].unique()
    told = [text for text in texts.filter(texts.str.contains_any(list(CHECKS))) if _only_tells(text)]
    if told:
        rows = frame.filter(pl.col("text").is_in(told))["line"]
        taken = {*reading.parsed, *reading.continuation, *(loss.line for loss in reading.losses)}
        reading.not_mine = sorted(set(rows) - taken)
    return reading


def _read_line(line: str) -> Head | None:
    """As ``read_head``; words that are no error of CUDA and that nobody raised are another program's."""
    head = read_head(line)
    if head is None or head.role in {"terminate", "thc", "ancient", "warning"}:
        return head
    before = _before(head, line)
    if _is_told(head, before, line):
        return None
    raised = any(word in before for word in _RAISED)
    return head if raised or head.name or by_text_start(_plain(head.message)) else None


def _before(head: Head, line: str) -> str:
    """What stands in the line before the error's own words."""
    return line[: line.find(head.text.split(": ", 1)[0])]


def _is_told(head: Head, before: str, line: str) -> bool:
    """Somebody talks about the error; behind words that raise nothing no sentence may go on after it."""
    if is_explained(before):
        return True
    found = by_text_start(_plain(head.message))
    if found is None or not before.strip() or head.name or any(word in before for word in _RAISED):
        return False
    after = line[len(before) :].lower().partition(found[0].text.lower())[2]
    return goes_on(before, after or found[1])


def _only_tells(text: str) -> bool:
    """Whether a line is no error but text about one."""
    if "\n" in text:
        return False
    try:
        head = read_head(text)
    except GrammarError:
        return False
    return head is not None and head.role in {"check", "driver"} and _is_told(head, _before(head, text), text)


def _build(told: Told[Head], around: Around) -> Sequence[Record] | None:
    head = told.value
    after = [text for _, text in around.after]
    if head.role == "terminate":
        return _abort(told, around)
    if (head.role == "thc" and any(ANCIENT in text for text in after[:80])) or _is_ggml(told, after):
        return None
    body = read_body(head, after)
    around.used.update(around.after[n][0] for n in body.used)
    around.used.update(_terminate_lines(told, around))
    around.used.update(_thc_lines(told, around))
    fault = fault_of(told, around, _fault(told, around, body))
    mode = _mode(fault, body)
    return [fault, mode] if mode else [fault]


def _is_ggml(told: Told[Head], after: Sequence[str]) -> bool:
    return told.line.text.startswith(CHECKS) and any(text.strip().startswith(_GGML) for text in after[:2])


def _fault(told: Told[Head], around: Around, body: Body) -> FaultRecord:
    """What failed; the place in the file is filled in later."""
    head = told.value
    known = _known(head, body)
    site = _site(told, around, body)
    location = body.raised_at or (split_place(head.place) if head.place else None)
    out_of_memory = known is not None and known.code == 2
    own = known is not None and known.site == "A"
    unchecked = known is not None and _of_an_unchecked_launch(known, around.sync_point(_symbols(body)))
    blameless = out_of_memory or (known is not None and known.kind == "configuration")
    return FaultRecord(
        source=0,
        process="",
        line=0,
        last_line=0,
        block_first=0,
        text=head.text + (_DRIVER_OOM if out_of_memory else ""),
        witness=NAME,
        kind=known.kind if known else "unknown",
        site="host" if own and not unchecked and (site != "launch" or blameless) else site,
        code=known.code if known else None,
        name=body.name,
        vendor=_vendor(head, body),
        kernel=None if site == "sync" else _kernel(body),
        entry_point=body.operator,
        location=location,
        async_hint=body.async_hint,
        teardown=head.role == "warning",
        relayed=head.quoted,
    )


def _known(head: Head, body: Body) -> ErrorCode | None:
    """By name, by words, by the number before CUDA 10.1: the name is the same in all versions."""
    if body.name and (row := by_name(body.name)):
        return row
    if row := by_text(_plain(head.message)):
        return row
    if found := by_text_start(head.message):
        return found[0]
    return next((row for row in CODES if head.legacy and row.legacy == head.legacy), None)


def _plain(message: str) -> str:
    """Words of an error without the brackets of a ``repr`` around them."""
    return message.rstrip(")]}. ")


def _vendor(head: Head, body: Body) -> str | None:
    """By the error's name, never by the word "CUDA": ROCm builds print it too (formats.md 3.1)."""
    if body.name and (vendor := vendor_of(body.name)):
        return vendor
    return "amd" if body.amd else _WORDS.get(head.api or "", "nvidia")


def _site(told: Told[Head], around: Around, body: Body) -> FaultSite:
    """Who met it: a wait or a copy, the launch that the traceback shows, or nobody that the text shows."""
    if told.value.role == "warning" or around.sync_point(_symbols(body)):
        return "sync"
    return "launch" if around.frames or body.raised_at or body.symbols else "unknown"


def _of_an_unchecked_launch(known: ErrorCode, met_by: str | None) -> bool:
    """A launch error that a call without a launch returns: the runtime keeps it until somebody asks.

    A copy can be refused for its own arguments, but it has neither blocks nor registers.
    """
    if known.kind in {"invalid_configuration", "too_many_resources"}:
        return met_by is not None
    return known.kind == "invalid_argument" and met_by == WAIT


def _symbols(body: Body) -> list[str]:
    first = [f"{body.raised_at.function} {body.raised_at.file}"] if body.raised_at else []
    return first + body.symbols


def _kernel(body: Body) -> str | None:
    """What raised it in C++: the first frame that is not the checker."""
    return body.raised_at.function if body.raised_at else None


def _terminate_lines(told: Told[Head], around: Around) -> list[int]:
    if _WHAT not in told.line.text:
        return []
    return [number for number, text in around.before[-_NEAR:] if TERMINATE in text]


def _thc_lines(told: Told[Head], around: Around) -> list[int]:
    """The line that the C library printed before the exception of the same error."""
    if told.value.role != "ancient":
        return []
    return [number for number, text in around.before[-80:] if THC in text][-1:]


def _mode(fault: FaultRecord, body: Body) -> ModeRecord | None:
    """Launch blocking, as the text shows it.

    PyTorch prints the sentence about asynchronous reports unless ``CUDA_LAUNCH_BLOCKING`` is on (observed.md
    21). The newest version prints it for some codes only and another sentence for the rest, so its absence
    counts only in a whole text, for a device fault, without that other sentence. On AMD the variable has
    another form.
    """
    if fault.vendor != "nvidia" or body.async_hint is None:
        return None
    device_fault = any(row.code == fault.code and row.site == "B" for row in CODES)
    if body.async_hint is False and not device_fault:
        return None
    return ModeRecord(
        source=fault.source, line=fault.line, name="launch_blocking", value=body.async_hint is False
    )


def _own_error(what: str) -> Head | None:
    """The error of c10 in a ``what()``, if it is one."""
    try:
        return _read_line(what)
    except GrammarError:
        return None


def _abort(told: Told[Head], around: Around) -> Sequence[Record] | None:
    """``terminate called``: the error in its ``what()`` is a record of its own, if some witness reads it."""
    near = around.after[:_NEAR]
    what = next((text for _, text in near if text.strip().startswith(_WHAT)), None)
    if what is not None and _own_error(what):
        return None
    if what is not None and any(word in what for word in (*WATCHDOG, *gates_of_others(NAME))):
        return []
    around.used.update(number for number, text in near if text == what)
    said = f"{told.value.text}: {what.strip().removeprefix(_WHAT).strip()}" if what else told.value.text
    fault = FaultRecord(
        source=0,
        process="",
        line=0,
        last_line=0,
        block_first=0,
        text=said,
        witness=NAME,
        kind="host_abort",
        site="host",
    )
    return [fault_of(told, msgspec.structs.replace(around, trace=None, running=()), fault)]


WITNESS = Witness(
    name=NAME,
    program="torch",
    gates=(*CHECKS, DRIVER, ANCIENT, THC, *WARNINGS, TERMINATE),
    read=read,
    grammar="c10.lark",
)

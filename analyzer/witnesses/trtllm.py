"""TensorRT and TensorRT-LLM (formats.md 3.13). Their calls are waits, so they met what an earlier kernel did.

``Encountered an error in sampling: CUDA error: ...`` is PyTorch's text: c10 reads it.
"""

from __future__ import annotations

import re

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading
from analyzer.numbers import integer, need_integer
from analyzer.parse.c10_text import split_place
from analyzer.schema import FaultKind, SourceFrame
from analyzer.tables.codes import ErrorCode
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.calls import site_of_call
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault, error_code, flat, read_forms

NAME = "trtllm"
_AFTER_LINES = 40
_NUMBER = re.compile(r"\(([0-9]+)\)+\s*$")
_FRAME = re.compile(r"[0-9]+ +0x[0-9a-f]+ ")
_RELEASES = ("~", "deallocate", "destroy", "free", "release")
# The file, or (TensorRT 10) the interface that was called.
_WHERE = r"(?:(?:[0-9]+: )?\[[A-Za-z0-9_./\-]+::[^]]*\]|I[A-Za-z]+::[A-Za-z0-9]+:) "
_FORMS = (
    Form(
        rule="runtime",
        begins=r"Encountered an error in [^:]*: (?:\[TensorRT-LLM\]\[[A-Z]+\] )*CUDA runtime error in ",
    ),
    Form(rule="runtime", begins="CUDA runtime error in "),
    # Only what ended the program: the autotuner and rejected requests print the same words.
    Form(rule="check", begins=r"what\(\): +\[TensorRT-LLM\]\[ERROR\] Assertion failed: "),
    Form(rule="engine", begins=_WHERE + r"Error Code 1: (?:C[Uu][Dd][Aa] |Myelin |C[Uu][A-Za-z]+ \()"),
    Form(rule="memory", begins=_WHERE + "Error Code [0-9]+: OutOfMemory "),
)


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses = Losses(NAME)
    reading = Reading()
    for at, one in enumerate(read_forms(frame, NAME, _FORMS, losses)):
        reading.parsed.extend(one.lines)
        fault = _fault(one)
        if one.rule in {"runtime", "check"} and at < FETCHED:
            used = _frames(one, fetch)
            reading.continuation.extend(used)
            fault = msgspec.structs.replace(fault, last_line=max([fault.last_line, *used]))
        reading.records.append(fault)
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    return reading


def _fault(one: Seen) -> FaultRecord:
    if one.rule == "memory":
        return build_fault(one, NAME, "out_of_memory", "host", vendor="nvidia")
    if one.rule == "check":
        return _check(one)
    known = _known(one)
    kind: FaultKind = known.kind if known else "library_status" if one.get("LIBRARY") else "unknown"
    function = one.get("FUNCTION") or ""
    site = "host" if known and known.site == "A" else site_of_call(one.get("CALL") or function)
    teardown = function.startswith(_RELEASES)
    fault = build_fault(one, NAME, kind, site, code=known, vendor="nvidia", teardown=teardown)
    return msgspec.structs.replace(fault, location=_location(one))


def _check(one: Seen) -> FaultRecord:
    """A condition of its own C++ code; ``TLLM_MPI_CHECK`` is one, with the number that MPI returned."""
    returned = one.get("RETURNED")
    status = returned.strip("'") if returned else None
    kind: FaultKind = "library_status" if status is not None else "unknown"
    fault = build_fault(one, NAME, kind, "host", name=f"MPI error {status}" if status is not None else None)
    place = one.get("PLACE")
    return msgspec.structs.replace(fault, location=split_place(place) if place else None)


def _known(one: Seen) -> ErrorCode | None:
    number = _NUMBER.search(one.get("NUMBERED") or "")
    return error_code(None, integer(number[1]) if number else None, one.get("WORDS"))


def _location(one: Seen) -> SourceFrame | None:
    place, file, line = one.get("PLACE"), one.get("FILE"), one.get("LINE")
    if place is not None:
        return split_place(place)
    return (
        SourceFrame(file=file, line=need_integer(line), function=one.get("FUNCTION") or "")
        if file and line
        else None
    )


def _frames(one: Seen, fetch: Fetch) -> list[int]:
    """The numbered frames that follow: ``1       0x7ff8cc198305 void tensorrt_llm::...``."""
    used = []
    for number, text in flat(fetch.after(one.line, one.process, _AFTER_LINES)):
        if not _FRAME.match(text.strip()):
            break
        used.append(number)
    return used


WITNESS = Witness(
    name=NAME,
    program="trtllm",
    vendor="nvidia",
    gates=(
        "CUDA runtime error in ",
        "what():  [TensorRT-LLM][ERROR] Assertion failed: ",
        "Error Code 1: CUDA ",
        "Error Code 1: Myelin ",
        "Error Code 1: Cu",
        "Error Code 1: OutOfMemory ",
        "Error Code 2: OutOfMemory ",
    ),
    read=read,
    grammar="trtllm.lark",
)

"""Checks of AOTInductor's runner, its shim and the host code that Inductor makes (formats.md 3.8).

The outer texts say nothing: what failed stands in the ``Error:`` line above the exception, or in its inner
message. Checks on a device are told by the device (``device_assert``); Python's NaN asserts by ``inductor``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import parse, token_text
from analyzer.model import FaultRecord, Reading, Record
from analyzer.parse.source_stack import innermost_user, traceback_before
from analyzer.schema import FaultKind, SourceFrame
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Told
from analyzer.witnesses.host_error import Around, fault_of, read_host_errors

NAME = "aoti_checks"
INPUTS, SHIM, API, BOUNDS = (
    "input_handles[",
    "Exception in aoti_torch: ",
    "API call failed at ",
    "index out of bounds: 0 <= ",
)
_ERROR, _RAISED, _RUNNER = "Error: ", "RuntimeError: ", "_func_("
_WHAT, _FROM, _THROWN = "what():", "Exception raised from ", " at "
_ASSERTED, _GENERIC = "Assertion `", "kernel"  # an assert of the device; Inductor's name without a name
_OTHERS = ("CUDA error: ", "HIP error: ", "CUDA driver error: ")  # their own witness says what that is
_NEAR, _TRACE = 4, 80  # lines between the two places of one message: beside each other, or a traceback apart


class _Text(msgspec.Struct, frozen=True):
    """One check. ``raised``: by the exception, not the line that said it first; ``kernel``: as named."""

    rule: str
    text: str
    raised: bool = False
    kernel: str | None = None
    label: str | None = None


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_host_errors(frame, fetch, NAME, _read_line, _build)


def _read_line(line: str) -> _Text | None:
    for literal, rule in ((INPUTS, "input_check"), (SHIM, "shim"), (BOUNDS, "bounds"), (API, "api_call")):
        at = line.find(literal)
        if at < 0 or (rule == "bounds" and _ASSERTED in line):
            continue
        if rule == "bounds":
            at = _start_of_bounds(line, at)
        if rule == "api_call":
            at = line.rfind(" ", 0, line.find(_RUNNER)) + 1
        if at < 0 or (rule == "api_call" and _RUNNER not in line):
            return None
        raised = rule != "bounds" and (_RAISED in line[:at] or rule == "api_call")
        return _text(rule, line[at:].strip(), raised=raised)
    return None


def _start_of_bounds(line: str, at: int) -> int:
    """An exception's text can begin with the kernel; elsewhere the words are somebody else's."""
    for opener in (_WHAT, _RAISED):
        said = line.find(opener, 0, at)
        if said >= 0:
            return said + len(opener)
    return at if line[:at].rstrip().endswith(_ERROR.strip()) else -1


def _text(rule: str, text: str, *, raised: bool) -> _Text:
    tree = parse("aoti_checks", text, rule)
    tokens: dict[str, str] = {}
    for token in tree.scan_values(lambda value: isinstance(value, str)):
        tokens.setdefault(token.type, token_text(token))
    if rule == "bounds":
        named = tokens.get("NAME") if "CPP_PLACE" in tokens else None
        return _Text(
            rule, text, kernel=None if named == _GENERIC else named, label=tokens["BOUND"].rstrip("L")
        )
    if rule == "shim" and "WHAT" in tokens:
        return _Text("nan", text, label=tokens["NAME"])
    if rule == "api_call":  # without the list of its arguments
        text = f"{tokens['API']} API call failed at {tokens['PLACE'].strip()}"
    return _Text(rule, text, raised=raised)


def _build(told: Told[_Text], around: Around) -> Sequence[Record] | None:
    text = told.value
    if text.raised:
        return _outer(told, around)
    kind: FaultKind = (
        "nan" if text.rule == "nan" else "kernel_raised" if text.rule == "shim" else "input_check"
    )
    kernel = text.kernel or (_thrown_by(around) if text.rule == "bounds" else None)
    python = _raised_later(text.text, around) if text.rule == "input_check" else None
    fault = _record(text.text, kind, python=python, kernel=kernel, label=text.label)
    relayed = text.rule == "shim" and any(other in text.text for other in _OTHERS)
    return [fault_of(told, around, msgspec.structs.replace(fault, relayed=relayed))]


def _outer(told: Told[_Text], around: Around) -> Sequence[Record]:
    """The exception of the runner: the ``Error:`` line above is the message, and can be a record already."""
    said = _said_before(around)
    if said is None:
        kind: FaultKind = "input_check" if told.value.rule == "input_check" else "unknown"
        return [fault_of(told, around, _record(told.value.text, kind))]
    number, message = said
    if any(literal in message for literal in (INPUTS, BOUNDS)):
        return []
    around.used.add(number)
    fault = fault_of(told, around, _record(f"{message} ({told.value.text})", "unknown"))
    relayed = any(other in message for other in _OTHERS)
    return [msgspec.structs.replace(fault, line=fault.line if relayed else number, relayed=relayed)]


def _said_before(around: Around) -> tuple[int, str] | None:
    """Line and text of the nearest ``Error:`` line above the traceback."""
    for number, text in reversed(around.before[-_TRACE:]):
        at = text.find(_ERROR)
        if at >= 0 and (at == 0 or not text[at - 1].isalnum()):
            return number, text[at + len(_ERROR) :].strip()
    return None


def _raised_later(message: str, around: Around) -> SourceFrame | None:
    """The Python line whose call was refused: the exception that follows has a traceback."""
    after = around.after[:_TRACE]
    end = next(
        (n for n, (_, text) in enumerate(after) if _RAISED in text and (message in text or API in text)), None
    )
    if end is None:
        return None
    trace = traceback_before([text for _, text in after[:end]])
    if trace is None:
        return None
    around.used.update(after[n][0] for n in (*trace.lines, end))
    return innermost_user(trace.frames)


def _thrown_by(around: Around) -> str | None:
    """The function that threw, where the exception says so."""
    for number, text in around.after[:_NEAR]:
        if text.startswith(_FROM) and _THROWN in text:
            around.used.add(number)
            return text.removeprefix(_FROM).split(_THROWN, 1)[0]
    return None


def _record(
    text: str,
    kind: FaultKind,
    *,
    python: SourceFrame | None = None,
    kernel: str | None = None,
    label: str | None = None,
) -> FaultRecord:
    return FaultRecord(
        source=0,
        process="",
        line=0,
        last_line=0,
        block_first=0,
        text=text,
        witness=NAME,
        kind=kind,
        site="host",
        kernel=kernel,
        label=label,
        python=python,
    )


WITNESS = Witness(
    name=NAME,
    program="aoti",
    gates=(INPUTS, SHIM, API, BOUNDS),
    read=read,
    grammar="aoti_checks.lark",
)

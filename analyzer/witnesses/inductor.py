"""Checks in code that Inductor made: NaN and infinity, sizes and strides (formats.md 3.8, observed.md 28)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import FaultRecord, Reading, Record
from analyzer.parse.source_stack import innermost_user, parse_exception, traceback_before
from analyzer.schema import FaultKind, SourceFrame
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Told
from analyzer.witnesses.host_error import Around, fault_of, read_host_errors

NAME = "inductor"
NAN, INF = ".isnan().any().item()", ".isinf().any().item()"
CPP_NAN, CPP_INF = "At least one NAN in ", "At least one INF in "
GUARD = "expected size "
_ASSERT, _GUARDED = "assert not ", "assert_size_stride("
_NEAR = 3  # the marks under the source line, then the exception
_WORDS = {"isnan": "NaN", "NAN": "NaN", "isinf": "Inf", "INF": "Inf"}


class _Text(msgspec.Struct, frozen=True):
    """One check. ``name``: of the buffer, if the text has it."""

    rule: str
    text: str
    what: str = ""
    name: str | None = None


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_host_errors(frame, fetch, NAME, _read_line, _build)


def _read_line(line: str) -> _Text | None:
    if NAN in line or INF in line:
        at = line.find(_ASSERT)
        return (
            _text("nan_assert", line[at:])
            if at >= 0 and line[at + len(_ASSERT) :][:1].isidentifier()
            else None
        )
    for literal in (CPP_NAN, CPP_INF):
        if (at := line.find(literal)) >= 0:
            return _text("cpp_check", line[at:])
    at = line.find(GUARD)
    return _text("guard", line[at:]) if at >= 0 and "stride" in line[at:] else None


def _text(rule: str, text: str) -> _Text:
    fields = _fields(rule, text.strip())
    what = fields.get("CHECK") or fields.get("CPP_CHECK", "")
    return _Text(rule, text.strip(), _WORDS.get(what, ""), fields.get("NAME"))


def _fields(rule: str, text: str) -> dict[str, str]:
    from lark import Token

    fields: dict[str, str] = {}
    for token in parse("inductor", text, rule).children:
        if isinstance(token, Token):
            fields.setdefault(token.type, token_text(token))
    return fields


def _build(told: Told[_Text], around: Around) -> Sequence[Record] | None:
    text = told.value
    if text.rule == "nan_assert":
        return _assertion(told, around)
    if text.rule == "guard":
        name = _guarded(around.frames)
        said = f" ({name} of the compiled graph has another layout than it was compiled for)" if name else ""
        fault = _record(text.text + said, "input_check", name, around.python)
    else:
        fault = _record(text.text, "nan", text.name, around.python)
    return [fault_of(told, around, fault)]


def _assertion(told: Told[_Text], around: Around) -> Sequence[Record] | None:
    """The assert is the last source line of its traceback: the exception follows, without words.

    What ran in between is generated code, so the innermost user frame is the line that called the compiled
    graph: the buffer was made somewhere in what that function computes.
    """
    end = next((n for n, (_, text) in enumerate(around.after[:_NEAR]) if _is_assertion(text)), None)
    if end is None:
        return None
    before = [text for _, text in around.before]
    trace = traceback_before([*before, told.line.text, *(text for _, text in around.after[:end])])
    around.used.update(number for number, _ in around.after[: end + 1])
    if trace is not None:
        around.used.update(around.before[n][0] for n in trace.lines if n < len(before))
    python = innermost_user(trace.frames) if trace else None
    text = told.value
    where = f" in the compiled code that {python.function} calls" if python else ""
    return [
        fault_of(
            told, around, _record(f"{text.what} in {text.name}{where}: {text.text}", "nan", text.name, python)
        )
    ]


def _is_assertion(text: str) -> bool:
    raised = parse_exception(text)
    return raised is not None and raised[0] == "AssertionError"


def _guarded(frames: Sequence[SourceFrame]) -> str | None:
    """The tensor that the guard looked at."""
    text = (frames[-1].text or "").strip() if frames else ""
    if not text.startswith(_GUARDED):
        return None
    try:
        return _fields("guarded", text)["NAME"]
    except GrammarError:
        return None


def _record(text: str, kind: FaultKind, name: str | None, python: SourceFrame | None) -> FaultRecord:
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
        label=name,
        python=python,
    )


WITNESS = Witness(
    name=NAME,
    program="inductor",
    gates=(NAN, INF, CPP_NAN, CPP_INF, "AssertionError: expected size "),
    read=read,
    grammar="inductor.lark",
)

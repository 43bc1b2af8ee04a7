"""Errors of Triton's launcher and compiler (formats.md 3.9, observed.md 15, 21)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import FaultRecord, FaultSite, Reading, Record
from analyzer.numbers import need_integer
from analyzer.schema import FaultKind, SourceFrame
from analyzer.tables.codes import ErrorCode, by_code, by_text
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Told
from analyzer.witnesses.host_error import Around, begins_error, fault_of, read_host_errors

NAME = "triton"
LAUNCHER, RESOURCES = "Triton Error [", "out of resource: "
COMPILER, PASSES = "triton.compiler.errors.", "PassManager::run failed"
ASSEMBLER = "PTXAS error: "
_RULES = (
    (LAUNCHER, "launcher"),
    (RESOURCES, "resources"),
    (COMPILER, "compilation"),
    (PASSES, "passes"),
    (ASSEMBLER, "assembler"),
)
_VENDORS = {"CUDA": "nvidia", "HIP": "amd"}
# Inductor prints why a candidate of its autotuning cannot run, and goes on with the others.
_REJECTED = (" for benchmark choice ", "Ignoring this choice")
_VERDICT_LINES = 4  # between the error and what becomes of the candidate
_SOURCE_LINES = 60  # of the kernel that a compilation error shows
_RUNTIME = ("triton/runtime/", "triton/backends/", "triton/compiler/", "torch/_inductor/runtime/")


class _Text(msgspec.Struct, frozen=True):
    """One error: the rule that read it, its tokens by terminal."""

    rule: str
    text: str
    message: str
    api: str | None = None
    code: int | None = None


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_host_errors(frame, fetch, NAME, _read_line, _build)


def _read_line(line: str) -> _Text | None:
    for literal, rule in _RULES:
        at = line.find(literal)
        if at >= 0:
            text = line[at:].rstrip()
            end = min((where for word in _REJECTED if (where := text.find(word)) > 0), default=-1)
            if end > 0 and not _is_fatal(rule, text[:end]):
                return _Text("rejected", text, "")
            text = text[:end].rstrip() if end > 0 else text
            fields = _fields(rule, text)
            code = need_integer(fields["INT"]) if rule == "launcher" and "INT" in fields else None
            return _Text(rule, text, fields.get("MESSAGE", "").strip(), fields.get("API"), code)
    return None


def _is_fatal(rule: str, text: str) -> bool:
    """Whether the candidate took the context with it: then its error is the first of a crash."""
    known = by_text(_fields(rule, text).get("MESSAGE", "")) if rule == "launcher" else None
    return rule == "launcher" and (known is None or known.sticky)


def _fields(rule: str, text: str) -> dict[str, str]:
    from lark import Token

    fields: dict[str, str] = {}
    for token in parse("triton", text, rule).children:
        if isinstance(token, Token):
            fields.setdefault(token.type, token_text(token))
    return fields


def _build(told: Told[_Text], around: Around) -> Sequence[Record]:
    text = told.value
    if text.rule == "rejected" or (not _is_fatal(text.rule, text.text) and _is_ignored(around)):
        return []
    fault = _launcher(text, around) if text.rule == "launcher" else _compiler(text, around)
    return [fault_of(told, around, fault)]


def _is_ignored(around: Around) -> bool:
    """Newer versions say in a line of its own that autotuning goes on without the candidate."""
    return any(_REJECTED[1] in line for _, line in around.after[:_VERDICT_LINES])


def _launcher(text: _Text, around: Around) -> FaultRecord:
    """A call of the driver that the launcher made: the launch, or the load of the module before it."""
    known = by_text(text.message) or (by_code(text.code) if text.code is not None else None)
    loading = around.sync_point()
    return _record(
        text,
        kind=known.kind if known else "unknown",
        site=_site(known, around, loading),
        said=f" ({loading})" if loading else "",
        code=known.code if known else text.code,
        vendor=_VENDORS.get(text.api or ""),
        kernel=None if loading else _launched(around.frames),
    )


def _site(known: ErrorCode | None, around: Around, loading: str | None) -> FaultSite:
    if loading is not None:
        return "sync"
    if known is not None and known.code == 2:  # no suspect for a failed allocation
        return "host"
    return "launch" if around.frames else "unknown"


def _compiler(text: _Text, around: Around) -> FaultRecord:
    """Too little shared memory or registers, or no kernel at all: exact, nothing was launched."""
    resources = text.rule == "resources"
    kernel = _launched(around.frames) if resources else _defined(around)
    return _record(
        text,
        kind="too_many_resources" if resources else "kernel_raised",
        site="launch" if around.frames else "host",
        said="" if resources else " (the kernel was not compiled)",
        kernel=kernel,
    )


def _record(
    text: _Text,
    *,
    kind: FaultKind,
    site: FaultSite,
    said: str,
    code: int | None = None,
    vendor: str | None = None,
    kernel: str | None = None,
) -> FaultRecord:
    return FaultRecord(
        source=0,
        process="",
        line=0,
        last_line=0,
        block_first=0,
        text=text.text + said,
        witness=NAME,
        kind=kind,
        site=site,
        code=code,
        vendor=vendor,
        kernel=kernel,
        # Triton prints no sentence about asynchronous reports: its absence is no sign, and no objection.
        async_hint=False,
    )


def _launched(frames: Sequence[SourceFrame]) -> str | None:
    """The kernel that the innermost frame outside Triton's runtime launches, as its source line calls it."""
    outside = [frame for frame in frames if not _in_runtime(frame)]
    if not outside or len(outside) == len(frames):
        return None
    text = (outside[-1].text or "").strip().removeprefix("return ")
    try:
        fields = parse("triton", text.split(" = ", 1)[-1], "launch").children
    except GrammarError:
        return None
    names = [token_text(token) for token in fields if getattr(token, "type", "") == "NAME"]  # type: ignore[arg-type]
    return names[-1] if names else None


def _in_runtime(frame: SourceFrame) -> bool:
    return any(folder in frame.file.replace("\\", "/") for folder in _RUNTIME)


def _defined(around: Around) -> str | None:
    """The function that a compilation error shows after its head."""
    for number, line in around.after[:_SOURCE_LINES]:
        if begins_error(line):
            return None
        if line.strip().startswith("def "):
            try:
                name = _fields("definition", line.strip())["NAME"]
            except GrammarError:
                return None
            around.used.add(number)
            return name
    return None


WITNESS = Witness(
    name=NAME,
    program="triton",
    gates=(LAUNCHER, RESOURCES, COMPILER, PASSES, ASSEMBLER),
    read=read,
    grammar="triton.lark",
)

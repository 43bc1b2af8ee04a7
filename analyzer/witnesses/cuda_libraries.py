"""Statuses of cuBLAS, cuDNN, cuSPARSE, cuSOLVER, cuFFT, NVRTC and their HIP sisters (formats.md 3.5).

A library is a bystander as often as not: ``EXECUTION_FAILED`` is its own kernel *or anything before it*.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from analyzer.grammar import parse, token_text
from analyzer.model import FaultRecord, Reading, Record
from analyzer.parse.c10_text import Head, read_body
from analyzer.schema import Value
from analyzer.tables.statuses import POISONED, has, meaning_of
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Told
from analyzer.witnesses.host_error import Around, fault_of, read_host_errors

NAME = "cuda_libraries"
CHECKS = ("CUDA error: ", "HIP error: ")
NVRTC, DNN, FRONTEND = "NVRTC error: ", "cuDNN error: ", "cuDNN Frontend error: "
SOLVER, FFT = "cusolver error: ", "cuFFT error: "
_CALL = " when calling `"
_MARKS = (
    *((word, "check") for word in CHECKS),
    ("CUDA NVRTC error: ", "nvrtc"),
    ("HIP NVRTC error: ", "nvrtc"),
    (DNN, "dnn"),
    (FRONTEND, "frontend"),
    (SOLVER, "solver"),
    (FFT, "fft"),
)
_SOURCE_CODE = '{%"'
_AMD = ("HIP", "ROC", "MIOPEN")


# cuSPARSE prints words instead of a name.
_WORDS = {
    "initialization error": "NOT_INITIALIZED",
    "out of memory": "ALLOC_FAILED",
    "insufficient resources": "ALLOC_FAILED",
    "invalid value": "INVALID_VALUE",
    "architecture mismatch": "ARCH_MISMATCH",
    "kernel launch failure": "EXECUTION_FAILED",
    "execution failed": "EXECUTION_FAILED",
    "internal error": "INTERNAL_ERROR",
    "operation not supported": "NOT_SUPPORTED",
    "matrix type not supported": "MATRIX_TYPE_NOT_SUPPORTED",
}


class _Text(Value):
    """One status. ``status``: its name, or what its words stand for; ``other``: an error of CUDA itself."""

    text: str
    rule: str
    status: str = ""
    words: str = ""
    function: str | None = None
    other: bool = False


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    lost = _Lost()
    return read_host_errors(frame, fetch, NAME, _read_line, lost.build)


class _Lost:
    """Remembers for each process whether an error was seen before."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def build(self, told: Told[_Text], around: Around) -> Sequence[Record] | None:
        """The record of one status; null = an error of CUDA itself, which another witness reads."""
        text, process = told.value, told.line.process
        first = process not in self._seen
        self._seen.add(process)
        if text.other:
            return None
        body = read_body(Head(role="check", text=text.text), [line for _, line in around.after])
        around.used.update(around.after[n][0] for n in body.used)
        return [fault_of(told, around, _fault(text, around, first=first))]


@lru_cache(maxsize=4096)
def _read_line(line: str) -> _Text | None:
    found = [(at, word, rule) for word, rule in _MARKS if (at := line.find(word)) >= 0]
    if not found:
        return None
    at, word, rule = min(found)
    text = line[at:].rstrip()
    if text[len(word) : len(word) + 1] in {"", *_SOURCE_CODE}:  # a traceback shows the raise
        return None
    if rule == "check" and _CALL not in text and "_STATUS_" not in text[len(word) :].split(" ", 1)[0]:
        return _Text(text=text, rule=rule, other=True)
    fields = _fields(rule, text)
    words = fields.get("WORDS", "")
    status = fields.get("STATUS") or _WORDS.get(words.strip().lower(), "")
    shown = text if rule == "frontend" else _shown(text)
    return _Text(text=shown, rule=rule, status=status, words=words, function=fields.get("FUNCTION"))


def _fields(rule: str, text: str) -> dict[str, str]:
    from lark import Token

    fields: dict[str, str] = {}
    for token in parse("cuda_libraries", text, rule).children:
        if isinstance(token, Token):
            fields.setdefault(token.type, token_text(token))
    return fields


def _shown(text: str) -> str:
    """Without the general advice behind it."""
    return text.split(" This error may appear ", 1)[0]


def _fault(text: _Text, around: Around, *, first: bool) -> FaultRecord:
    means = meaning_of(text.status)
    kind, said = means.kind, means.said
    if not first and has(text.status, "NOT_INITIALIZED"):
        kind, said = "library_status", POISONED
    site = means.site
    if site == "launch" and not around.frames:
        site = "host"
    return FaultRecord(
        source=0,
        process="",
        line=0,
        last_line=0,
        block_first=0,
        text=text.text + said,
        witness=NAME,
        kind="invalid_argument" if text.rule == "frontend" else kind,
        site="host" if text.rule == "frontend" else site,
        name=text.status if "_STATUS_" in text.status or "ERROR" in text.status else None,
        vendor="amd" if text.status.startswith(_AMD) else "nvidia",
        kernel=text.function if site == "launch" else None,
        entry_point=text.function,
    )


WITNESS = Witness(
    name=NAME,
    usually="torch",
    gates=(*CHECKS, NVRTC, DNN, FRONTEND, SOLVER, FFT),
    read=read,
    grammar="cuda_libraries.lark",
)

"""Single texts of PyTorch's CUDA checks, and the lines that follow one (formats.md 3.1, ``c10.lark``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.numbers import integer, need_integer
from analyzer.parse.source_stack import HEADER
from analyzer.schema import SourceFrame, Value

GRAMMAR = "c10"
CHECKS = ("CUDA error: ", "HIP error: ")
DRIVER = "CUDA driver error: "
ANCIENT, THC = "cuda runtime error (", "THCudaCheck FAIL"
WARNINGS = ("CUDA warning: ", "HIP warning: ")
TERMINATE = "terminate called after throwing an instance"
WATCHDOG = (
    "watchdog thread terminated",
    "ProcessGroupNCCL",
)  # its own witness: it never names a culprit (3.6)
# Its own witness reads the whole line: with the kernel that XLA names, or the status (3.14).
_XLA = ("XlaRuntimeError: ", "Execution of replica ", "Failed to launch CUDA kernel: ")
_XLA_NAME = ": CUDA_ERROR_"
_QUOTING = ("failed with error '", 'failed with error "')
_SOURCE_CODE = '{%"'  # what a format string goes on with
_LIBRARY_CALL = " when calling "  # cuBLAS and cuSPARSE begin with "CUDA error: " too (formats.md 3.5)

HeadRole = Literal["check", "driver", "ancient", "thc", "warning", "terminate"]

_SEARCH, _RAISED, _FRAME = "Search for `", "Exception raised from ", "frame #"
_ASYNC = "kernel errors might be asynchronously reported"
_LOG_FILE = "run with CUDA_LOG_FILE=stderr"
_TAILS = (
    "Compile with `TORCH_USE_",
    "Device-side assertion tracking was not enabled by user",
    "Device-side assertions were explicitly omitted for this error check",
)
_OTHER_LINES = (
    "For debugging consider passing ",
    "For more detailed error information, run with ",
    "GPU device may be out of range, do you have enough GPUs?",
    "C++ CapturedTraceback:",
    "<omitting python frames>",
    "what():",
)
_CHECKERS = (
    "c10::Error::",
    "c10::AcceleratorError",
    "c10::CUDAError",
    "c10::detail::",
    "torchCheckFail",
    "_cuda_check_implementation",
    "_hip_check_implementation",
    "cuda_driver_check",
    "SetStackTraceFetcher",
    "get_backtrace",
)
_UNKNOWN_SYMBOL = "<unknown function>"
_OPS = "at::_ops::"
_MAX_FOREIGN = 8  # lines of other writers in a row inside one error text
_MAX_BLANK = 2
_AMD_WORDS = ("AMD_SERIALIZE_KERNEL", "TORCH_USE_HIP_DSA", "libc10_hip", "libtorch_hip")


class Head(Value):
    """The line that holds the error. ``text``: without what was glued before or after it.

    ``message``: the error's own words. ``legacy``: number of ancient texts. ``rest``: what follows on it.
    ``quoted``: somebody else says that a worker failed with it.
    """

    role: HeadRole
    text: str
    message: str = ""
    api: str | None = None
    name: str | None = None
    legacy: int | None = None
    function: str | None = None
    place: str | None = None
    rest: str = ""
    quoted: bool = False


class Body(msgspec.Struct):
    """What follows the head. ``used``: positions in the lines given.

    ``async_hint``: the sentence about asynchronous reports stands there; null = the text is not whole, or of
    a version that does not print it for every code. ``symbols``: C++ frames, innermost first, no checkers.
    """

    name: str | None = None
    async_hint: bool | None = None
    raised_at: SourceFrame | None = None
    symbols: list[str] = []
    operator: str | None = None
    amd: bool = False
    whole: bool = False
    log_file: bool = False
    used: list[int] = []


@lru_cache(maxsize=4096)
def read_head(line: str) -> Head | None:
    """Read the first error text of a line; null = it belongs to another family.

    Raises:
        GrammarError: It begins like one, but cannot be read.
    """
    found = [(at, role, word) for role, word in _HEADS if (at := line.find(word)) >= 0]
    if not found or any(word in line for word in WATCHDOG):
        return None
    at, role, word = min(found)
    text = line[at:]
    if any(mark in line[:at] for mark in _XLA) or (role == "check" and _XLA_NAME in text):
        return None
    if any(char in text[len(word) : len(word) + 1] for char in _SOURCE_CODE):  # a traceback shows the raise
        return None
    if role == "check" and (_LIBRARY_CALL in text or "_STATUS_" in text.split(" ", 3)[2]):
        return None
    fields = _fields(role, text)
    place = fields.get("PLACE") or (f"{fields['PATH']}:{fields['INT']}" if "PATH" in fields else None)
    return Head(
        role=role,
        text=_shown(role, fields, text),
        message=fields.get("MESSAGE", ""),
        api=fields.get("API"),
        name=fields.get("ERROR_NAME"),
        legacy=integer(fields.get("LEGACY")),
        function=fields.get("FUNCTION"),
        place=place,
        rest=fields.get("REST", ""),
        quoted=line[:at].endswith(_QUOTING),
    )


def read_body(head: Head, lines: Sequence[str]) -> Body:
    """Read the lines after a head; those of other writers are skipped.

    Args:
        head: What the head said; the whole text can stand on its line.
        lines: The lines after it.
    """
    body = Body(name=head.name)
    _note(body, head.rest)
    skipped = blank = 0
    for position, line in enumerate(lines):
        text = line.strip()
        if HEADER in text or any(word in text for _, word in _HEADS):
            break
        if not text:
            blank += 1
        elif _take(body, text):
            body.used.extend(range(position - blank if not skipped else position, position + 1))
            skipped = blank = 0
        else:
            skipped += 1
        if skipped > _MAX_FOREIGN or blank > _MAX_BLANK:
            break
    if body.async_hint is None and body.whole and not body.log_file:
        body.async_hint = False
    return body


def split_place(place: str, function: str = "") -> SourceFrame:
    """``/pytorch/x.cu:12`` as a frame."""
    path, _, number = place.rpartition(":")
    return SourceFrame(file=path, line=need_integer(number), function=function)


def _take(body: Body, text: str) -> bool:
    """Take a line if it belongs to the text."""
    if text.startswith(_RAISED):
        return _raised(body, text)
    if text.startswith((_FRAME, "#")):
        return _frame(body, text)
    if text.startswith(_SEARCH):
        try:
            body.name = body.name or _fields("search", text).get("ERROR_NAME")
        except GrammarError:
            return False
        _note(body, text)
        return True
    return _note(body, text) or text.startswith(_OTHER_LINES)


def _note(body: Body, text: str) -> bool:
    """Take what a sentence says; several can stand on one line."""
    before = (body.async_hint, body.whole, body.log_file)
    body.async_hint = True if _ASYNC in text else body.async_hint
    body.whole = body.whole or any(word in text for word in _TAILS)
    body.log_file = body.log_file or _LOG_FILE in text
    body.amd = body.amd or any(word in text for word in _AMD_WORDS)
    said = _ASYNC in text or _LOG_FILE in text or any(word in text for word in _TAILS)
    return said or before != (body.async_hint, body.whole, body.log_file)


def _raised(body: Body, text: str) -> bool:
    try:
        fields = _fields("raised", text)
    except GrammarError:
        return False
    if body.raised_at is None and not _is_checker(fields["CALLER"]):
        body.raised_at = split_place(fields["PLACE"], fields["CALLER"])
    return True


def _frame(body: Body, text: str) -> bool:
    rule = "frame" if text.startswith(_FRAME) else "captured"
    try:
        fields = _fields(rule, text)
    except GrammarError:
        return False
    symbol = fields.get("SYMBOL") or fields["CAPTURED"]
    body.amd = body.amd or any(word in text for word in _AMD_WORDS)
    if not _is_checker(symbol) and not symbol.startswith(_UNKNOWN_SYMBOL):
        body.symbols.append(symbol)
    if body.operator is None and _OPS in symbol:
        body.operator = "aten::" + symbol.partition(_OPS)[2].partition("::")[0]
    return True


def _is_checker(symbol: str) -> bool:
    return any(word in symbol for word in _CHECKERS)


@lru_cache(maxsize=4096)
def _fields(start: str, text: str) -> dict[str, str]:
    from lark import Token

    fields: dict[str, str] = {}
    for token in parse(GRAMMAR, text, start).children:
        assert isinstance(token, Token)
        fields.setdefault(token.type, token_text(token))
        if token.type == "INT":
            fields["LEGACY"] = token_text(token)
    return fields


def _shown(role: HeadRole, fields: dict[str, str], text: str) -> str:
    """The error as a reader wants to see it: no advice behind it."""
    if role in {"check", "driver"}:
        return f"{fields['API']} {'driver ' if role == 'driver' else ''}error: {fields['MESSAGE']}"
    if role == "warning":
        function = f" (function {fields['FUNCTION']})" if "FUNCTION" in fields else ""
        return f"{fields['API']} warning: {fields['MESSAGE']}{function}"
    return text.strip()


_HEADS: tuple[tuple[HeadRole, str], ...] = (
    *(("check", word) for word in CHECKS),
    ("driver", DRIVER),
    ("ancient", ANCIENT),
    ("thc", THC),
    *(("warning", word) for word in WARNINGS),
    ("terminate", TERMINATE),
)

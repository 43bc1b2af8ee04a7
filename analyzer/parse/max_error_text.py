"""Single texts of MAX errors: what kind of text a line is, and what it says (``max_errors.lark``)."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.numbers import need_integer
from analyzer.schema import SourceFrame, Value

GRAMMAR = "max_errors"
ENTRY = "An error occurred in kernel entry point named "
KERNEL = "An error occurred in kernel named "
HINT = "To get more accurate error information, set "
SOURCE_HINT = "To see the Python source location of this op, run again with "
UNHANDLED = "Unhandled exception caught during execution: "
NAN = "NaN/Inf detected in "
DRIVER = "support your current NVIDIA GPU driver"
CALLS = ("CUDA call failed: ", "HIP call failed: ")
FAILED_CALLING = " failed calling "

TextRole = Literal[
    "entry", "kernel", "call", "serialised", "nan", "driver", "unhandled", "hint", "source_hint"
]
CAUSES: frozenset[TextRole] = frozenset({"call", "serialised", "nan", "driver", "unhandled"})
HINTS: frozenset[TextRole] = frozenset({"hint", "source_hint"})
_PLAIN: tuple[tuple[TextRole, str], ...] = (("entry", ENTRY), ("kernel", KERNEL), ("nan", NAN))
_LAST: tuple[tuple[TextRole, str], ...] = (  # a cause in the same line comes first
    ("unhandled", UNHANDLED),
    ("hint", HINT),
    ("source_hint", SOURCE_HINT),
)
_RAISED = ("Error: ", "Exception: ")  # ends of exception names, before the text that was raised
_GPU_APIS = frozenset({"cuda", "hip", "gpu"})


class ErrorText(Value):
    """One text, read.

    ``text``: without what was glued before it. ``name``: of the entry point or the kernel, or of the
    error (``CUDA_ERROR_...``). ``api``: ``CUDA`` or ``HIP``. ``location``: the Mojo line it gives.
    ``device``: ``gpu:0``. ``setting``: what a hint says to set.
    """

    role: TextRole
    text: str
    name: str | None = None
    api: str | None = None
    description: str | None = None
    location: SourceFrame | None = None
    device: str | None = None
    label: str | None = None
    tensor_type: str | None = None
    setting: str | None = None


def read_text(line: str) -> ErrorText | None:
    """Read the first MAX error text of a line.

    Args:
        line: A line without envelope. Other text may be glued before it (formats.md 7).

    Returns:
        Null = the line holds no text of this family.

    Raises:
        GrammarError: It holds one, but not in a form that the grammar reads.
    """
    for role, literal in _PLAIN:
        at = line.find(literal)
        if at >= 0:
            return _read_plain(role, line[at:])
    for literal in (FAILED_CALLING, *CALLS, DRIVER):
        at = line.find(literal)
        if at >= 0 and (literal != FAILED_CALLING or _is_mojo_call(line)):
            return _read_cause(literal, line, at)
    for role, literal in _LAST:
        at = line.find(literal)
        if at >= 0:
            return _read_plain(role, line[at:])
    return None


@lru_cache(maxsize=2048)
def _fields(start: TextRole, text: str) -> dict[str, str]:
    """First token of each terminal, and ``TEXT``: all up to what the grammar takes as rest."""
    from lark import Token

    fields: dict[str, str] = {}
    end = 0
    for token in parse(GRAMMAR, text, start).children:
        assert isinstance(token, Token)
        fields.setdefault(token.type, token_text(token))
        if token.type != "REST" and token.end_pos is not None:
            end = token.end_pos
    return fields | {"TEXT": text[:end]}


def _read_plain(role: TextRole, text: str) -> ErrorText:
    """A text that begins with its literal."""
    fields = _fields(role, text)
    if role in {"entry", "kernel"}:
        return ErrorText(role=role, text=fields["TEXT"], name=fields["QUOTED"][1:-1])
    if role == "nan":
        label, tensor = fields["LABEL"][1:-1].strip(), fields["TENSOR_TYPE"][1:-1]
        # The text ends with a word, not with a token that is kept.
        return ErrorText(role=role, text=_without_rest(text, fields), label=label, tensor_type=tensor)
    if role == "unhandled":
        return ErrorText(role=role, text=fields["REST"])
    return ErrorText(role=role, text=text, setting=fields.get("SETTING"))


def _without_rest(text: str, fields: dict[str, str]) -> str:
    rest = fields.get("REST")
    return text.removesuffix(rest).rstrip() if rest else text


def _read_cause(literal: str, line: str, at: int) -> ErrorText:
    """A failed call or a refused driver: the Mojo location stands before the literal, if there is one."""
    if literal == FAILED_CALLING:
        return _read_serialised(line[line.rfind(" ", 0, at) + 1 :])
    role: TextRole = "driver" if literal == DRIVER else "call"
    for begin in (line.rfind("At ", 0, at), line.rfind("At: ", 0, at), -1):
        first = begin if begin >= 0 else at if role == "call" else _raised_at(line, at, or_else=0)
        try:
            fields = _fields(role, line[first:])
        except GrammarError:
            if begin < 0:
                raise
        else:
            raised = _raised_at(line, first, or_else=first)
            return _cause(role, fields, line[raised:first] + fields["TEXT"])
    raise AssertionError  # the last turn returns or raises


def _read_serialised(text: str) -> ErrorText:
    """``x.mojo:29:50 failed calling ... with error '...'``: the text of sync mode (observed.md 14)."""
    fields = _fields("serialised", text)
    inner = fields["ERROR"].strip("'")
    call = next((literal for literal in CALLS if literal in inner), None)
    if call:
        fields = _fields("call", inner[inner.index(call) :]) | {
            k: fields[k] for k in ("PATH", "INT", "DEVICE_NAME")
        }
    return _cause("serialised", fields, text)


def _cause(role: TextRole, fields: dict[str, str], text: str) -> ErrorText:
    path = fields.get("PATH")
    description = fields.get("DESCRIPTION", fields.get("SAID"))
    return ErrorText(
        role=role,
        text=text,
        name=fields.get("ERROR_NAME"),
        api=fields.get("API"),
        description=description.removeprefix("(").removesuffix(")") if description else None,
        location=SourceFrame(file=path, line=need_integer(fields["INT"]), function="") if path else None,
        device=_device(fields.get("DEVICE_NAME")),
    )


def _raised_at(line: str, before: int, or_else: int) -> int:
    """Where the raised text begins: behind ``RuntimeError: `` or the like; ``or_else`` = no such name."""
    ends = [line.rfind(word, 0, before) + len(word) for word in _RAISED if word in line[:before]]
    return max(ends, default=or_else)


def _is_mojo_call(line: str) -> bool:
    # Kubernetes also writes "failed calling webhook".
    return " on device " in line and (".mojo:" in line or ".🔥:" in line)


def _device(name: str | None) -> str | None:
    """``cuda:0`` as the op log writes it: ``gpu:0``."""
    if name is None:
        return None
    api, _, number = name.partition(":")
    return f"gpu:{number or 0}" if api in _GPU_APIS else name

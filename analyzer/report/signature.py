"""A stable fingerprint of an incident, to find duplicates of the same crash.

Made of what stays when the same bug strikes again: kind of the fault, family of the accused op or
kernel, Python source line. Not made of pids, times, addresses, ranks, devices, line numbers of the
log, folders, hashes in symbols or instance counters. Null without a root fault.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from analyzer.schema import Fault, Result, SourceFrame, Suspect, Value

VERSION = "ta1"  # a new letter and number for any change that changes the fingerprint of an old incident
SHORT_DIGITS = 12

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_HASH = re.compile(r"_(?=[0-9a-f]*\d|[a-f]{16})[0-9a-f]{8,}(?=_|\b)")  # Mojo and Inductor symbols
# raise_1, fusion.123; group 1 = a run of numbers that something follows: it stays
_COUNTER = re.compile(r"((?:[_.#]\d++)++)(?!$|_async$|[,)\]])|(?:[_.#]\d++)++")
_RESULT = re.compile(r"%\d+")  # MLIR values
_SPACE = re.compile(r"\s+")
_TEMPLATE = re.compile(
    r"^(?:void\s++)?((?=[\w:~]+?::[\w:~])[\w:~]++|(?<=void )\w++)\s*+[<(].*$", re.DOTALL
)  # demangled C++


class Signature(Value):
    """``id`` is the short form; ``kind``, ``what`` and ``where`` are what it was made of."""

    id: str
    kind: str
    what: str
    where: str
    basis: Literal["suspect", "kernel", "report"]


def signature(result: Result) -> Signature | None:
    """The fingerprint of the first root fault.

    ``basis`` says how much it can be trusted: ``suspect`` = the accused op; ``kernel`` = the kernel that
    an exact report names; ``report`` = only kind and report site, so that different bugs can share it.
    """
    fault = next((one for one in result.faults if one.role == "root"), None)
    if fault is None:
        return None
    suspect = _accused(result)
    if suspect is not None:
        frame = suspect.source[0] if suspect.source else None
        return _made(fault, family(suspect.op.name), _place(frame), "suspect")
    kernel = fault.kernel or fault.reported_at.kernel
    if fault.trust == "exact" and kernel is not None:
        return _made(fault, family(kernel), _place(fault.reported_at.python), "kernel")
    return _made(fault, "not placed", _place(fault.reported_at.python), "report")


def family(name: str) -> str:
    """An op or kernel name without what changes from build to build or run to run."""
    text = _TEMPLATE.sub(r"\1", name.strip())
    text = _ADDRESS.sub("", text)
    text = _HASH.sub("", text)
    text = _RESULT.sub("", text)
    text = _COUNTER.sub(r"\1", text)
    return _SPACE.sub(" ", text).strip(" _")


def _accused(result: Result) -> Suspect | None:
    rank = result.conclusion.suspect
    return next((one for one in result.suspects if one.rank == rank), None)


def _place(frame: SourceFrame | None) -> str:
    """File name without its folder: installs differ."""
    return f"{frame.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.line}" if frame else ""


def _made(fault: Fault, what: str, where: str, basis: Literal["suspect", "kernel", "report"]) -> Signature:
    text = f"{VERSION}\0{fault.kind}\0{what}\0{where}"
    digest = hashlib.sha256(text.encode("utf-8", errors="backslashreplace")).hexdigest()
    return Signature(
        id=f"{VERSION}-{digest[:SHORT_DIGITS]}", kind=fault.kind, what=what, where=where, basis=basis
    )

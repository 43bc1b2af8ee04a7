"""The body of a block of compute-sanitizer: kernel, place, launch. No witness by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from analyzer.grammar import GrammarError, parse
from analyzer.numbers import need_integer
from analyzer.parse.source_stack import is_user_frame
from analyzer.schema import SourceFrame
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import Fields, read_line
from analyzer.witnesses.sanitizer_blocks import Block
from analyzer.witnesses.symbols import base_name, without_parameters

GRAMMAR = "sanitizer"
# CUDA's own device code: __syncthreads(), warp intrinsics, cooperative groups.
_CUDA_HEADER = re.compile(
    r"/cuda(?:[-_]?[0-9.]+)?/(?:[^:]{1,250}/)?include/|/include/crt/"
    r"|(?:^|/)(?:sm_[0-9]+_\w+|device_functions|cooperative_groups)\.(?:hpp|h)$"
)
_OLD_PLACE = re.compile(r"(\S[^:]*:[0-9]+):")
# Files of the launchers between the user's line and the launch, as the tool shows them (no folder).
_LAUNCHERS = frozenset(
    {
        "driver.py",
        "jit.py",
        "autotuner.py",
        "compiler.py",
        "runtime.py",
        "triton_heuristics.py",
        "static_cuda_launcher.py",
        "static_triton_launcher.py",
        "output_code.py",
        "_ops.py",
        "module.py",
        "functional.py",
        "_tensor.py",
        "eval_frame.py",
        "aot_autograd.py",
        "runtime_wrappers.py",
        "utils.py",
        "graphs.py",
        "dispatcher.py",
        "devicearray.py",
        "devices.py",
        "core.pyx",
        "raw.pyx",
        "function.pyx",
    }
)


class Body(msgspec.Struct):
    """What the lines of a block say. ``python``: host frames of the launch, innermost first.

    ``frames``: places and offsets of device code, innermost first. ``unwritten``: the words for memory that
    nobody wrote.
    """

    kernel: str | None = None
    offset: str | None = None
    place: SourceFrame | None = None
    wrong: str | None = None
    near: str | None = None
    unwritten: str | None = None
    frames: list[tuple[SourceFrame | None, str | None]] = []
    python: list[SourceFrame] = []


def read_body(block: Block, losses: Losses) -> Body:
    """The lines of a block; what the grammar does not read is a loss."""
    body = Body()
    for line, text in block.body:
        try:
            (rule,) = parse(GRAMMAR, text, "body").children
        except GrammarError as error:
            losses.add(block.source, line, text, str(error))
            continue
        assert not isinstance(rule, str)
        _take(body, str(rule.data), read_line(GRAMMAR, "body", text) or {})
    return _at_user_code(body)


def _take(body: Body, rule: str, fields: Fields) -> None:
    if rule == "place":
        take_place(body, fields)
    elif rule == "device_frame":  # the outermost one is the kernel
        symbol = fields["SYMBOL"][0] if "SYMBOL" in fields else _old_symbol(fields["OLD_FRAME"][0])
        body.kernel = without_parameters(symbol)
        where = first_of(fields, "PLACE") or _old_place(first_of(fields, "OLD_FRAME") or "")
        body.frames.append((_place(where, body.kernel), first_of(fields, "HEX")))
    elif rule == "address":
        body.wrong = first_of(fields, "WRONG") or body.wrong
    elif rule == "other" and "UNWRITTEN" in fields:
        body.unwritten = fields["UNWRITTEN"][0].strip()
    elif rule == "near":
        body.near = fields["NEAR"][0]
    elif rule == "host_frame" and "PY_FRAME" in fields:
        function, _, place = fields["PY_FRAME"][0].strip().rpartition(" in ")
        path, _, number = place.rpartition(":")
        body.python.append(SourceFrame(file=path, line=need_integer(number), function=function))


def _at_user_code(body: Body) -> Body:
    """A barrier stands in a header of CUDA: the innermost frame outside of them is the place."""
    if body.place is None or _CUDA_HEADER.search(body.place.file) is None:
        return body
    for place, offset in body.frames:
        if place is not None and _CUDA_HEADER.search(place.file) is None:
            is_kernel = place == body.frames[-1][0]
            return msgspec.structs.replace(body, place=place, offset=offset if is_kernel else None)
    return body


def _place(where: str, symbol: str) -> SourceFrame | None:
    path, _, number = where.rpartition(":")
    return SourceFrame(file=path, line=need_integer(number), function=base_name(symbol)) if path else None


def _old_place(frame: str) -> str:
    """``/srv/k.cu:41`` of ``/srv/k.cu:41:k(int) (k(int) : 0x160)``; empty = it has none."""
    found = _OLD_PLACE.match(frame)
    return found.group(1) if found else ""


def first_of(fields: Fields, token: str) -> str | None:
    """The first token of a kind."""
    return next(iter(fields.get(token, [])), None)


def _old_symbol(frame: str) -> str:
    """``k(int)`` of ``/srv/k.cu:41:k(int) (k(int) : 0x160)``: the bracket repeats the symbol."""
    text = frame.rpartition(" : 0x")[0]
    cuts = [at for at in range(len(text)) if text.startswith(" (", at)]
    return next((text[at + 2 :] for at in cuts if text[:at].endswith(text[at + 2 :])), text[cuts[-1] + 2 :])


def take_place(body: Body, fields: Fields) -> None:
    """Kernel, offset and place of an ``at`` line, if it is the first."""
    symbol = first_of(fields, "SYMBOL")
    if symbol is None or body.kernel is not None:
        return
    body.kernel = without_parameters(symbol)
    body.offset = first_of(fields, "HEX")
    where = (first_of(fields, "PLACE") or first_of(fields, "OLD_PLACE") or "").rstrip(":")
    body.place = _place(where, body.kernel)


def launch_of(frames: Sequence[SourceFrame]) -> SourceFrame | None:
    """The innermost host frame that is the user's own; where all are launchers, the outermost."""
    own = [frame for frame in frames if _is_user(frame)]
    return own[0] if own else frames[-1] if frames else None


def _is_user(frame: SourceFrame) -> bool:
    if "/" in frame.file:
        return is_user_frame(frame)
    return frame.file not in _LAUNCHERS

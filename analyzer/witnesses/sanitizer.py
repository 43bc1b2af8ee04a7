"""compute-sanitizer (memcheck, racecheck, initcheck, synccheck) and cuda-memcheck (formats.md 3.18).

A block is exact for the faulting kernel, its instruction and the thread (observed.md 26). ``Program hit
cudaErrorLaunchFailure`` afterwards is the same fault as later calls met it; alone it names no place (the
fault was outside what the tool instruments). The tool turns every device fault into 719.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.faults.codes import ErrorCode
from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import Advice, FaultRecord, FaultSite, KernelState, Reading, Record
from analyzer.parse.source_stack import is_user_frame
from analyzer.schema import FaultKind, SourceFrame
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import Fields, error_code, read_line
from analyzer.witnesses.sanitizer_blocks import MARK, Block, fold, split_lines
from analyzer.witnesses.symbols import base_name, without_parameters

NAME = "compute-sanitizer"
_GRAMMAR = "sanitizer"
FETCHED = 48  # folded blocks whose bodies are read
_SILENT = frozenset({"leak", "quiet"})
# Queries that fail by design, and are no error of the program: it asks whether a pointer or symbol is known.
_QUERIES = frozenset(
    {
        "cuPointerGetAttribute",
        "cuPointerGetAttributes",
        "cudaPointerGetAttributes",
        "cuGetProcAddress",
        "cuGetProcAddress_v2",
        "cuModuleGetFunction",
        "cuModuleGetGlobal",
        "cuModuleGetGlobal_v2",
        "cuEventQuery",
        "cuStreamQuery",
        "cudaEventQuery",
        "cudaStreamQuery",
        "cuCtxGetDevice",
        "cuCtxGetCurrent",
        "cudaGetDriverEntryPoint",
    }
)
# What has no kind in the fixed vocabulary (design.md 7) is told by its name.
_NAMES = {
    "uninitialized": "read of uninitialised memory",
    "race": "data race",
    "hazard": "data race",
    "barrier": "barrier that not all threads reach",
    "host_access": "access of the host to memory in use by the device",
}
# Answers of a call that say that the state asked for is there: programs try, and go on (PyTorch does).
_ANSWERS = frozenset({600, 704, 712})
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


class _Head(msgspec.Struct):
    rule: str
    fields: Fields


class _Body(msgspec.Struct):
    """What the lines of a block say. ``python``: host frames of the launch, innermost first."""

    kernel: str | None = None
    offset: str | None = None
    place: SourceFrame | None = None
    wrong: str | None = None
    near: str | None = None
    python: list[SourceFrame] = []


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001  (all that matters is gated)
    """Read the gated lines of one source: one record for each message and place in the code."""
    rows, other = split_lines(frame)
    losses = Losses(NAME)
    reading = Reading(not_mine=other)
    if rows.is_empty():
        return reading
    sure = rows.filter(~pl.col("is_head")).height > 0 or rows["said"].str.contains("SANITIZER|MEMCHECK").any()
    lost = set[int]()
    for block in fold(rows, FETCHED):
        head = _read_head(block.head)
        if isinstance(head, GrammarError):
            lost.add(block.line)
            if sure:
                losses.add(block.source, block.line, MARK + block.head, str(head))
            continue
        reading.records.extend(_records(block, head, losses))
    shown = rows.filter(~pl.col("line").is_in(list(lost)))
    reading.parsed = shown.filter("is_head")["line"].unique().sort().to_list()
    reading.continuation = sorted(set(shown.filter(~pl.col("is_head"))["line"]) - set(reading.parsed))
    if not sure:
        reading.not_mine = sorted({*reading.not_mine, *lost})
    reading.losses = losses.all()
    return reading


def _read_head(text: str) -> _Head | GrammarError:
    from lark import Token

    if not text:  # the head was cut off: what follows is a body
        return _Head(rule="quiet", fields={})
    try:
        (rule,) = parse(_GRAMMAR, text.strip(), "head").children
    except GrammarError as error:
        return error
    assert not isinstance(rule, str)
    fields: Fields = {}
    for token in rule.scan_values(lambda child: isinstance(child, Token)):
        fields.setdefault(token.type, []).append(token_text(token))
    return _Head(rule=str(rule.data), fields=fields)


def _records(block: Block, head: _Head, losses: Losses) -> list[Record]:
    body = _read_body(block, losses)
    if head.rule in _SILENT:
        return []
    if head.rule == "api":
        return [_api(block, head, body)] if _is_error(head) else []
    if head.rule in {"race", "hazard"}:
        _take_place(body, head.fields)
        if head.fields["LEVEL"][0].upper() in {"WARNING", "WARN", "INFO"}:
            return [Advice(source=block.source, line=block.line, text=block.head)]
    return [_fault(block, head, body)]


def _is_error(head: _Head) -> bool:
    """Whether a call failed: a query or a request for what is there already is no error of the program."""
    known = _code(head)
    return head.fields["API"][0] not in _QUERIES and (known is None or known.code not in _ANSWERS)


def _code(head: _Head) -> ErrorCode | None:
    """The code that a call returned; null = it is not in the table."""
    words = (_first(head.fields, "STRING") or "").strip('"')
    return error_code(_first(head.fields, "NAME"), _number(head), words)


def _number(head: _Head) -> int | None:
    return int(head.fields["INT"][0]) if "INT" in head.fields else None


def _read_body(block: Block, losses: Losses) -> _Body:
    body = _Body()
    for line, text in block.body:
        try:
            (rule,) = parse(_GRAMMAR, text, "body").children
        except GrammarError as error:
            losses.add(block.source, line, text, str(error))
            continue
        assert not isinstance(rule, str)
        _take(body, str(rule.data), read_line(_GRAMMAR, "body", text) or {})
    return body


def _take(body: _Body, rule: str, fields: Fields) -> None:
    if rule == "place":
        _take_place(body, fields)
    elif rule == "device_frame":  # the outermost one is the kernel
        symbol = fields["SYMBOL"][0] if "SYMBOL" in fields else _old_symbol(fields["OLD_FRAME"][0])
        body.kernel = without_parameters(symbol)
    elif rule == "address":
        body.wrong = _first(fields, "WRONG") or body.wrong
    elif rule == "near":
        body.near = fields["NEAR"][0]
    elif rule == "host_frame" and "PY_FRAME" in fields:
        function, _, place = fields["PY_FRAME"][0].strip().rpartition(" in ")
        path, _, number = place.rpartition(":")
        body.python.append(SourceFrame(file=path, line=int(number), function=function))


def _first(fields: Fields, token: str) -> str | None:
    """The first token of a kind."""
    return next(iter(fields.get(token, [])), None)


def _old_symbol(frame: str) -> str:
    """``k(int)`` of ``/srv/k.cu:41:k(int) (k(int) : 0x160)``: the bracket repeats the symbol."""
    text = frame.rpartition(" : 0x")[0]
    cuts = [at for at in range(len(text)) if text.startswith(" (", at)]
    return next((text[at + 2 :] for at in cuts if text[:at].endswith(text[at + 2 :])), text[cuts[-1] + 2 :])


def _take_place(body: _Body, fields: Fields) -> None:
    symbol = _first(fields, "SYMBOL")
    if symbol is None or body.kernel is not None:
        return
    body.kernel = without_parameters(symbol)
    body.offset = _first(fields, "HEX")
    where = (_first(fields, "PLACE") or _first(fields, "OLD_PLACE") or "").rstrip(":")
    path, _, number = where.rpartition(":")
    if path:
        body.place = SourceFrame(file=path, line=int(number), function=base_name(body.kernel))


def _launch(frames: Sequence[SourceFrame]) -> SourceFrame | None:
    """The innermost host frame that is the user's own; where all are launchers, the outermost."""
    own = [frame for frame in frames if _is_user(frame)]
    return own[0] if own else frames[-1] if frames else None


def _is_user(frame: SourceFrame) -> bool:
    if "/" in frame.file:
        return is_user_frame(frame)
    return frame.file not in _LAUNCHERS


def _fault(block: Block, head: _Head, body: _Body) -> FaultRecord:
    kind = _kind(head, body)
    state = None
    if body.kernel is not None:
        pc = f"+{body.offset}" if body.offset else None
        state = KernelState(kernel=body.kernel, exception=block.head.strip(), pc=pc, frame=body.place)
    name = _NAMES.get(head.rule) if kind == "unknown" else None
    return _record(block, _text(block, body), kind, "device", body, state=state, name=name)


def _record(
    block: Block,
    text: str,
    kind: FaultKind,
    site: FaultSite,
    body: _Body,
    *,
    state: KernelState | None = None,
    name: str | None = None,
    code: int | None = None,
) -> FaultRecord:
    return FaultRecord(
        source=block.source,
        process=block.process,
        line=block.line,
        last_line=block.last_line,
        block_first=block.line,
        text=text,
        witness=NAME,
        kind=kind,
        site=site,
        code=code,
        name=name,
        vendor="nvidia",
        rank=block.rank,
        time_ns=block.time_ns,
        count=block.count,
        kernel=state.kernel if state else None,
        location=body.place,
        python=_launch(body.python),
        state=state,
    )


def _kind(head: _Head, body: _Body) -> FaultKind:
    """What the block is about. Races, barriers and uninitialised reads have no kind of their own."""
    words = " ".join([*head.fields.get("EXCEPTION", []), body.wrong or ""]).lower()
    if "misaligned" in words:
        return "misaligned_address"
    if head.rule == "access" or "out" in words or "uvm" in words:
        return "illegal_address"
    if "instruction" in words or " pc" in words:
        return "illegal_instruction"
    if "address space" in words:
        return "invalid_address_space"
    return "launch_failure" if head.rule == "exception" else "unknown"


def _text(block: Block, body: _Body) -> str:
    """The message, where, for how many threads, and what lies near the address."""
    text = block.head.strip()
    if body.kernel is not None and body.kernel not in text:
        offset = f"+{body.offset}" if body.offset else ""
        place = f" in {body.place.file}:{body.place.line}" if body.place else ""
        text += f" at {base_name(body.kernel)}{offset}{place}"
    details = [part for part in (_who(block), body.wrong, body.near) if part]
    return f"{text} ({'; '.join(details)})" if details else text


def _who(block: Block) -> str:
    if block.low[0] is None:
        return f"{block.count} times" if block.count > 1 else ""
    thread, inside = _dim(block.low[:3]), _dim(block.low[3:])
    if block.count == 1:
        return f"thread {thread} of block {inside}"
    high_thread, high_block = _dim(block.high[:3]), _dim(block.high[3:])
    return f"{block.count} threads: {thread} to {high_thread} of blocks {inside} to {high_block}"


def _dim(numbers: Sequence[int | None]) -> str:
    return f"({','.join(map(str, numbers))})"


def _api(block: Block, head: _Head, body: _Body) -> FaultRecord:
    """A call of the program that returned an error: it met the fault, unless the error is the call's own."""
    name = _first(head.fields, "NAME")
    known = _code(head)
    own = known is not None and known.site == "A"
    kind: FaultKind = known.kind if known else "unknown"
    code = known.code if known else _number(head)
    return _record(block, block.head.strip(), kind, "host" if own else "sync", body, name=name, code=code)


WITNESS = Witness(name=NAME, gates=(MARK,), read=read, grammar="sanitizer.lark")

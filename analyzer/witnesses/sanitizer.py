"""compute-sanitizer (memcheck, racecheck, initcheck, synccheck) and cuda-memcheck (formats.md 3.18).

A block is exact for the faulting kernel, its instruction and the thread (observed.md 26). ``Program hit
cudaErrorLaunchFailure`` afterwards is the same fault as later calls met it; alone it names no place (the
fault was outside what the tool instruments). The tool turns every device fault into 719.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import FaultRecord, FaultSite, KernelState, Reading, Record
from analyzer.numbers import integer
from analyzer.schema import FaultKind
from analyzer.tables.codes import ErrorCode
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import Fields, error_code
from analyzer.witnesses.sanitizer_blocks import MARK, Block, fold, split_lines
from analyzer.witnesses.sanitizer_body import GRAMMAR, Body, first_of, launch_of, read_body, take_place
from analyzer.witnesses.symbols import base_name

NAME = "compute-sanitizer"
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
    "host_access": "invalid memory access by a call of the host",
}
_UNWRITTEN = "read of memory that was never written, by a call of the host"
_FAILED = "Target application returned an error"
# Answers of a call that say that the state asked for is there: programs try, and go on (PyTorch does).
_ANSWERS = frozenset({600, 704, 712})


class _Head(msgspec.Struct):
    rule: str
    fields: Fields


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001  (all that matters is gated)
    """Read the gated lines of one source: one record for each message and place in the code."""
    rows, other = split_lines(frame)
    losses = Losses(NAME)
    reading = Reading(not_mine=other)
    if rows.is_empty():
        return reading
    sure = rows.filter(~pl.col("is_head")).height > 0 or rows["said"].str.contains("SANITIZER|MEMCHECK").any()
    lost = set[int]()
    failed = bool(rows["said"].str.starts_with(_FAILED).any())
    for block in fold(rows, FETCHED):
        head = _read_head(block.head)
        if isinstance(head, GrammarError):
            lost.add(block.line)
            if sure:
                losses.add(block.source, block.line, MARK + block.head, str(head))
            continue
        reading.records.extend(_records(block, head, losses, failed=failed))
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
        (rule,) = parse(GRAMMAR, text.strip(), "head").children
    except GrammarError as error:
        return error
    assert not isinstance(rule, str)
    fields: Fields = {}
    for token in rule.scan_values(lambda child: isinstance(child, Token)):
        fields.setdefault(token.type, []).append(token_text(token))
    return _Head(rule=str(rule.data), fields=fields)


def _records(block: Block, head: _Head, losses: Losses, *, failed: bool) -> list[Record]:
    body = read_body(block, losses)
    if head.rule in _SILENT:
        return []
    if head.rule == "api":
        return [_api(block, head, body, failed=failed)] if _is_error(head) else []
    if head.rule in {"race", "hazard"}:
        take_place(body, head.fields)
        if head.fields["LEVEL"][0].upper() in {"WARNING", "WARN", "INFO"}:
            return [msgspec.structs.replace(_fault(block, head, body), advice=True)]
    return [_fault(block, head, body)]


def _is_error(head: _Head) -> bool:
    """Whether a call failed: a query or a request for what is there already is no error of the program."""
    known = _code(head)
    return head.fields["API"][0] not in _QUERIES and (known is None or known.code not in _ANSWERS)


def _code(head: _Head) -> ErrorCode | None:
    """The code that a call returned; null = it is not in the table."""
    words = (first_of(head.fields, "STRING") or "").strip('"')
    return error_code(first_of(head.fields, "NAME"), _number(head), words)


def _number(head: _Head) -> int | None:
    return integer(first_of(head.fields, "INT"))


def _fault(block: Block, head: _Head, body: Body) -> FaultRecord:
    kind = _kind(head, body)
    state = None
    if body.kernel is not None:
        pc = f"+{body.offset}" if body.offset else None
        state = KernelState(kernel=body.kernel, exception=block.head.strip(), pc=pc, frame=body.place)
    name = _name(head, body) if kind == "unknown" else None
    return _record(block, _text(block, body), kind, "device", body, state=state, name=name)


def _name(head: _Head, body: Body) -> str | None:
    return _UNWRITTEN if head.rule == "host_access" and body.unwritten else _NAMES.get(head.rule)


def _record(
    block: Block,
    text: str,
    kind: FaultKind,
    site: FaultSite,
    body: Body,
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
        python=launch_of(body.python),
        state=state,
    )


def _kind(head: _Head, body: Body) -> FaultKind:
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


def _text(block: Block, body: Body) -> str:
    """The message, where, for how many threads, and what lies near the address."""
    text = block.head.strip()
    if body.kernel is not None and body.kernel not in text:
        offset = f"+{body.offset}" if body.offset else ""
        place = f" in {body.place.file}:{body.place.line}" if body.place else ""
        text += f" at {base_name(body.kernel)}{offset}{place}"
    details = [part for part in (_who(block), body.wrong, body.near, body.unwritten) if part]
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


def _api(block: Block, head: _Head, body: Body, *, failed: bool) -> FaultRecord:
    """A call of the program that returned an error: it met the fault, unless the error is the call's own.

    The tool reports each of them, also those that the program asks for and handles: no fault by itself.
    ``failed``: it says that the program did not end well.
    """
    name = first_of(head.fields, "NAME")
    known = _code(head)
    own = known is not None and known.site == "A"
    kind: FaultKind = known.kind if known else "unknown"
    code = known.code if known else _number(head)
    fault = _record(block, block.head.strip(), kind, "host" if own else "sync", body, name=name, code=code)
    return msgspec.structs.replace(fault, advice=not failed and not (known and known.sticky))


WITNESS = Witness(
    name=NAME,
    program="compute-sanitizer",
    vendor="nvidia",
    device_side=True,
    tool=True,
    gates=(MARK,),
    read=read,
    grammar="sanitizer.lark",
)

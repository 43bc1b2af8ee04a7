"""The ranks that torchrun saw fail, and which one first (formats.md 3.21).

It waits for its children and knows how each ended. The ``Root Cause`` is the rank whose end it observed
first: evidence for which process to believe, no cause. The lines of one entry are joined by their order.
Where it was told to stop itself, it says so by an exception of its own.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import parse, token_text
from analyzer.model import FaultRecord, Line, Reading, StopRequest
from analyzer.numbers import MAX_RANK, need_integer
from analyzer.schema import FaultKind
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses, Told, by_process, read_distinct
from analyzer.witnesses.server_lines import Signal, signal_of_exit

NAME = "torchrun"
_ROOT = "Root Cause (first observed failure)"
_LITERALS = (
    ("ChildFailedError:", "head"),
    (f"{_ROOT}:", "root"),
    ("failed (exitcode:", "failed"),
    ("Sending process ", "closing"),
    ("SignalException: Process ", "stopped"),
)
_FIELDS = ("rank", "exitcode", "traceback")  # at the start of a line of the block, if anywhere
_FOREIGN = "foreign"
_CLOSING = "closing signal SIG"


class _Said(msgspec.Struct, frozen=True):
    """One line: its rule and tokens."""

    rule: str
    tokens: dict[str, str]
    text: str


class _Entry(msgspec.Struct):
    """One rank of the block. ``first``: the launcher saw it fail first."""

    line: Line
    last_line: int
    rank: int
    first: bool
    exit_code: int | None = None
    pid: int | None = None


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001  (all that matters is gated)
    """Read the gated lines of one source: one record a rank."""
    losses, reading = Losses(NAME), Reading()
    for told in by_process(read_distinct(frame, _read_line, losses)):
        entries = _entries([one for one in told if one.value.rule != _FOREIGN])
        reading.records.extend(_fault(entry) for entry in entries)
        in_block = {entry.pid for entry in entries}
        for one in told:
            mine = one.value.rule != _FOREIGN
            (reading.parsed if mine else reading.not_mine).append(one.line.number)
            if one.value.rule == "failed" and need_integer(one.value.tokens["PID"]) not in in_block:
                reading.records.append(_failed(one))
            elif one.value.rule == "stopped":
                reading.records.append(_stopped(one))
    reading.losses = losses.all()
    reading.parsed = sorted(set(reading.parsed))
    reading.not_mine = sorted(set(reading.not_mine) - set(reading.parsed))
    return reading


def _read_line(text: str) -> _Said:
    for literal, rule in _LITERALS:
        at = text.find(literal)
        if at >= 0 and (rule != "closing" or _CLOSING in text):
            return _said(rule, text[at:])
    stripped = text.strip()
    for field in _FIELDS:
        if stripped.startswith(field) and stripped.removeprefix(field).lstrip().startswith(":"):
            return _said(field, stripped)
    return _Said(_FOREIGN, {}, "")


def _said(rule: str, text: str) -> _Said:
    from lark import Token

    tree = parse("torchrun", text.strip(), rule)
    tokens = {child.type: token_text(child) for child in tree.children if isinstance(child, Token)}
    return _Said(rule, tokens, text.strip())


def _entries(told: Sequence[Told[_Said]]) -> list[_Entry]:
    """The ranks in order of lines: an entry begins at its rank, the title before makes it the first one."""
    entries: list[_Entry] = []
    is_root = False
    for one in told:
        rule, tokens = one.value.rule, one.value.tokens
        if rule in {"head", "root"}:
            is_root = rule == "root"
        elif rule == "rank":
            rank = need_integer(tokens["RANK"], MAX_RANK)
            entries.append(_Entry(line=one.line, last_line=one.line.number, rank=rank, first=is_root))
        elif rule in _FIELDS and entries:
            _note(entries[-1], one)
    return entries


def _note(entry: _Entry, one: Told[_Said]) -> None:
    tokens = one.value.tokens
    entry.last_line = one.line.number
    if entry.pid is None:
        entry.pid = need_integer(tokens["PID"])
    if entry.exit_code is None:
        entry.exit_code = (
            need_integer(tokens["EXIT"]) if "EXIT" in tokens else -need_integer(tokens["SIGNAL"])
        )


def _fault(entry: _Entry) -> FaultRecord:
    who = f"rank {entry.rank}" + (f" (pid {entry.pid})" if entry.pid is not None else "")
    how = (
        "the first failure that torchrun observed"
        if entry.first
        else "another failure that torchrun observed"
    )
    fault = _record(entry.line, entry.exit_code, f"{who}: {how}")
    return msgspec.structs.replace(
        fault, last_line=entry.last_line, rank=entry.rank, pid=entry.pid, first_observed=entry.first
    )


def _failed(one: Told[_Said]) -> FaultRecord:
    """The line before the block, where the log has no block."""
    tokens = one.value.tokens
    text = f"local rank {tokens['LOCAL']} (pid {tokens['PID']}) failed"
    fault = _record(one.line, need_integer(tokens["EXIT"]), text)
    return msgspec.structs.replace(fault, pid=need_integer(tokens["PID"]))


def _stopped(one: Told[_Said]) -> FaultRecord:
    """A scheduler or a person ended the launcher: it takes its ranks with it, and none of them failed."""
    number, pid = need_integer(one.value.tokens["SIGNAL"]), need_integer(one.value.tokens["PID"])
    known = {known.value: known.name for known in signals.Signals}
    name = known.get(number, f"signal {number}")
    text = f"the launcher (pid {pid}) got signal {number} ({name}: somebody asked it to stop)"
    fault = _record(one.line, None, text)
    asked = StopRequest(signal=name)
    return msgspec.structs.replace(fault, kind="peer_lost", name=name, pid=pid, detail=asked)


def _record(line: Line, exit_code: int | None, text: str) -> FaultRecord:
    signal = signal_of_exit(exit_code) if exit_code is not None else None
    return FaultRecord(
        source=line.source,
        process=line.process,
        line=line.number,
        last_line=line.number,
        block_first=line.number,
        text=text + _how(exit_code, signal),
        witness=NAME,
        kind=_kind(signal),
        site="host",
        name=signal.name if signal else None,
        time_ns=line.time_ns,
        relayed=True,
    )


def _kind(signal: Signal | None) -> FaultKind:
    return signal.kind if signal else "unknown"


def _how(exit_code: int | None, signal: Signal | None) -> str:
    if exit_code is None:
        return ""
    return f", exit code {exit_code}" + (f" ({signal.name}: {signal.meaning})" if signal else "")


WITNESS = Witness(
    name=NAME,
    program="torchrun",
    launcher=True,
    gates=(
        "ChildFailedError:",
        _ROOT,
        "(local_rank: ",
        "exitcode  : ",
        "exitcode: ",
        "received by PID ",
        _CLOSING,
        "SignalException: Process ",
    ),
    read=read,
    grammar="torchrun.lark",
)

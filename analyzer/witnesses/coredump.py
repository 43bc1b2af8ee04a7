"""GPU core dumps as the driver reports them (observed.md 24): the device names the faulting kernel."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import parse, token_text
from analyzer.model import FaultRecord, KernelState, ModeRecord, Reading
from analyzer.numbers import need_integer
from analyzer.tables.codes import by_exception
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses, Told, by_process, read_distinct

NAME = "coredump"
GATE = "coredump: "
_SHOWN_PLACES = 4
_FOREIGN = "host"  # a core dump of the host: understood, and nothing for us
_HEADS = frozenset({"begin", "exception", "place", "pc", "frame", "file"})


class _Message(msgspec.Struct):
    """One line: the rule of the grammar that read it, and its tokens."""

    rule: str
    tokens: tuple[str, ...]
    text: str


class _Exception(msgspec.Struct):
    """One exception of a dump. ``stack``: symbols, innermost first."""

    told: Told[_Message]
    pc: str | None = None
    places: dict[str, int] = {}
    stack: list[str] = []


class _Dump(msgspec.Struct):
    """Lines of one dump."""

    lines: list[Told[_Message]] = []
    exceptions: list[_Exception] = []


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001  (all that matters is gated)
    """Read the gated lines of one source: one record a dump, exceptions folded."""
    losses = Losses(NAME)
    reading = Reading()
    for told in by_process(read_distinct(frame, _read_line, losses, key=_message)):
        reading.not_mine.extend(one.line.number for one in told if one.value.rule == _FOREIGN)
        for dump in _split(told):
            reading.records.extend(_records(dump))
            for line in dump.lines:
                is_head = line.value.rule in _HEADS
                (reading.parsed if is_head else reading.continuation).append(line.line.number)
    reading.losses.extend(losses.all())
    return reading


def _message(text: str) -> str:
    """The text behind ``[hh:mm:ss.uuuuuu] coredump: ``; empty = somebody else's.

    ``systemd-coredump: `` and cuda-gdb's ``Opening GPU coredump: `` end in the same word.
    """
    at = text.find(GATE)
    mine = at == 0 or text[:at].rstrip().endswith("]")
    return text[at + len(GATE) :].strip() if mine else ""


def _read_line(message: str) -> _Message | None:
    if not message:
        return _Message(rule=_FOREIGN, tokens=(), text="")
    (rule,) = parse("coredump", message).children
    assert not isinstance(rule, str)
    return _Message(
        rule=str(rule.data),
        tokens=tuple(token_text(token) for token in rule.children if isinstance(token, str)),
        text=message,
    )


def _split(told: Sequence[Told[_Message]]) -> list[_Dump]:
    """Lines of one process to dumps: each begins with its first line, also when that is cut off."""
    dumps: list[_Dump] = []
    for one in told:
        if one.value.rule == _FOREIGN:
            continue
        if not dumps or one.value.rule == "begin" or dumps[-1].lines[-1].value.text.startswith("All done"):
            dumps.append(_Dump())
        dumps[-1].lines.append(one)
        _note(dumps[-1].exceptions, one)
    return dumps


def _note(exceptions: list[_Exception], one: Told[_Message]) -> None:
    """Add what a line says to the exception it is about."""
    rule, tokens = one.value.rule, one.value.tokens
    if rule == "exception":
        exceptions.append(_Exception(told=one))
    elif not exceptions:
        return
    elif rule == "place":
        exceptions[-1].places[tokens[0]] = need_integer(tokens[1])
    elif rule == "pc":
        exceptions[-1].pc = tokens[0]
    elif rule == "frame" and len(tokens) == 3:
        exceptions[-1].stack.append(tokens[2])


def _records(dump: _Dump) -> list[FaultRecord | ModeRecord]:
    """The fault, if the device met one, and the switch that a dump shows."""
    first = dump.lines[0].line
    mode = ModeRecord(source=first.source, line=first.number, name="coredump", value=True)
    return [_fault(dump), mode] if dump.exceptions else [mode]


def _fault(dump: _Dump) -> FaultRecord:
    first, exception = dump.lines[0].line, dump.exceptions[0]
    line, name = exception.told.line, exception.told.value.tokens[0]
    device = exception.places.get("Device")
    # The outermost frame is the kernel; what stands before it are device functions.
    kernel = exception.stack[-1] if exception.stack else None
    return FaultRecord(
        source=line.source,
        process=line.process,
        line=line.number,
        last_line=dump.lines[-1].line.number,
        block_first=first.number,
        text=exception.told.value.text,
        witness=NAME,
        kind=by_exception(name) or "launch_failure",
        site="device",
        name=name,
        vendor="nvidia",
        device=None if device is None else f"gpu:{device}",
        rank=line.rank,
        time_ns=line.time_ns,
        count=len(dump.exceptions),
        kernel=kernel,
        state=KernelState(kernel=kernel, exception=name, pc=exception.pc, device=device) if kernel else None,
        label=_places(dump.exceptions),
    )


def _places(exceptions: Sequence[_Exception]) -> str | None:
    """``SM 127, warp 3``, of the first few exceptions."""
    told = [
        ", ".join(
            f"{name if name == 'SM' else name.lower()} {n}"
            for name, n in one.places.items()
            if name != "Device"
        )
        for one in exceptions
    ]
    shown = [text for text in told if text][:_SHOWN_PLACES]
    more = len(exceptions) - len(shown)
    return "; ".join(shown) + (f"; {more} more" if more else "") if shown else None


WITNESS = Witness(
    name=NAME,
    vendor="nvidia",
    device_side=True,
    tool=True,
    mode="coredump",
    gates=(GATE,),
    read=read,
    grammar="coredump.lark",
)

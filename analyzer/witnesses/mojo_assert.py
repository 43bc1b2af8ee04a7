"""Asserts of Mojo code, on the device and on the host, and ``ABORT`` (formats.md 3.10).

A device assert prints one line a thread, each with its own block and thread: the numbers are cut out by
Polars, so that only distinct (place, message) go through the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import Advice, FaultRecord, Reading, Record
from analyzer.numbers import need_integer
from analyzer.schema import FaultKind, SourceFrame
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses

NAME = "mojo_assert"
ASSERT, ABORT = " Assert ", "ABORT: "
_BLOCK, _THREAD = " block: [", "] thread: ["
_AXES = ("bx", "by", "bz", "tx", "ty", "tz")


class _Group(msgspec.Struct):
    """Lines that say the same. ``low``, ``high``: smallest and largest block and thread, null on the host."""

    source: int
    process: str
    rank: int | None
    time_ns: int | None
    head: str
    tail: str
    sample: str
    lines: list[int]
    low: list[int | None]
    high: list[int | None]

    @property
    def on_device(self) -> bool:
        """The text had a block and a thread."""
        return self.low[0] is not None


class _Told(msgspec.Struct):
    """A text, read. ``level`` is null for an abort."""

    message: str
    level: str | None = None
    location: SourceFrame | None = None


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001  (single lines)
    """Read the gated lines of one source: one record for each process, place and message."""
    losses = Losses(NAME)
    reading = Reading()
    records: dict[tuple[str, _Key], _Group] = {}
    told: dict[tuple[str, _Key], _Told] = {}
    for group in _groups(frame):
        try:
            text = _read_text(group)
        except GrammarError as error:
            for line in group.lines:
                losses.add(group.source, line, group.sample, str(error))
            continue
        if text is None:
            continue
        reading.parsed.extend(group.lines)
        key = (group.process, _key(text))
        told[key] = text
        records[key] = _join(records[key], group) if key in records else group
    reading.records = sorted(
        (_record(told[key], group) for key, group in records.items()), key=lambda record: record.line
    )
    reading.parsed.sort()
    reading.losses.extend(losses.all())
    return reading


_Key = tuple[str | None, str, SourceFrame | None]


def _key(text: _Told) -> _Key:
    return text.level, text.message, text.location


def _groups(frame: pl.DataFrame) -> Iterator[_Group]:
    """Lines with equal text apart from block and thread, by first line."""
    text = pl.col("text")
    cut = text.str.splitn(_BLOCK, 2)
    inner = cut.struct[1].str.splitn(_THREAD, 2)
    after = inner.struct[1].str.splitn("]", 2)
    numbers = [inner.struct[0].str.split_exact(",", 2), after.struct[0].str.split_exact(",", 2)]
    axes = [
        split.struct[axis].str.strip_chars().cast(pl.Int64, strict=False).alias(name)
        for name, (split, axis) in zip(_AXES, [(s, a) for s in numbers for a in range(3)], strict=True)
    ]
    whole = pl.all_horizontal(pl.col(name).is_not_null() for name in _AXES)
    rows = frame.select(
        "source", "process", "rank", "time_ns", "line", "text",
        cut.struct[0].alias("head"), after.struct[1].alias("tail"), *axes,
    ).with_columns(
        pl.when(whole).then("head").otherwise("text").alias("head"),
        pl.when(whole).then("tail").otherwise(pl.lit("")).alias("tail"),
        *(pl.when(whole).then(name).alias(name) for name in _AXES),
    )  # fmt: skip
    grouped = rows.group_by("source", "process", "head", "tail", maintain_order=True).agg(
        pl.col("rank", "time_ns").first(),
        pl.col("text").first().alias("sample"),
        pl.col("line").alias("lines"),
        pl.concat_list(pl.col(name).min() for name in _AXES).alias("low"),
        pl.concat_list(pl.col(name).max() for name in _AXES).alias("high"),
    )
    for row in grouped.iter_rows(named=True):
        yield msgspec.convert(row, _Group)


def _read_text(group: _Group) -> _Told | None:
    """What a group says; null = another program's text with the same word in it."""
    text = group.head + group.tail
    at = text.find(ABORT)
    if at == 0 or (at > 0 and text[at - 1] in "]|"):  # a progress bar can end just before it
        return _told("abort", text[at:])
    at = text.find(ASSERT)
    if not text[max(at, 0) + len(ASSERT) :].startswith(("Error:", "Warning:")):
        return None
    # The spellings, the likeliest first: a path can hold "At" too.
    begin = next((n for word in ("At: ", "At ", "At") if (n := text.rfind(word, 0, at)) >= 0), -1)
    return _told("assert", text[begin:]) if begin >= 0 else None


def _told(rule: str, text: str) -> _Told:
    from lark import Token

    fields: dict[str, str] = {}
    for token in parse("mojo_assert", text.strip(), rule).children:
        if isinstance(token, Token):
            fields.setdefault(token.type, token_text(token))
    path = fields.get("PATH")
    return _Told(
        message=fields.get("MESSAGE", "").strip(),
        level=fields.get("LEVEL"),
        location=SourceFrame(file=path, line=need_integer(fields["INT"]), function="") if path else None,
    )


def _join(one: _Group, other: _Group) -> _Group:
    """Two groups that differ only in what was glued before."""
    return msgspec.structs.replace(
        one,
        lines=sorted([*one.lines, *other.lines]),
        low=[_pick(min, pair) for pair in zip(one.low, other.low, strict=True)],
        high=[_pick(max, pair) for pair in zip(one.high, other.high, strict=True)],
    )


def _pick(choose: Callable[[Iterable[int]], int], pair: tuple[int | None, int | None]) -> int | None:
    known = [number for number in pair if number is not None]
    return choose(known) if known else None


def _record(text: _Told, group: _Group) -> Record:
    """The record of all lines that say the same."""
    first = group.lines[0]
    title = f"Assert {text.level}: " if text.level else ABORT
    said = title + text.message + _who(group)
    if text.level == "Warning":
        return Advice(source=group.source, line=first, text=said)
    kind: FaultKind = "device_assert" if group.on_device else "kernel_raised"
    return FaultRecord(
        source=group.source,
        process=group.process,
        line=first,
        last_line=group.lines[-1],
        block_first=first,
        text=said,
        witness=NAME,
        kind=kind if text.level else "host_abort",
        site="device" if group.on_device else "host",
        rank=group.rank,
        time_ns=group.time_ns,
        count=len(group.lines),
        location=text.location,
    )


def _who(group: _Group) -> str:
    """`` (64 threads: block [0,0,0] to [1,0,0], thread ...)``; empty on the host."""
    if not group.on_device:
        return ""
    low, high = (",".join(map(str, part)) for part in (group.low[:3], group.high[:3]))
    first, last = (",".join(map(str, part)) for part in (group.low[3:], group.high[3:]))
    if len(group.lines) == 1:
        return f" (block [{low}], thread [{first}])"
    return f" ({len(group.lines)} lines: block [{low}] to [{high}], thread [{first}] to [{last}])"


WITNESS = Witness(name=NAME, program="max", gates=(ASSERT, ABORT), read=read, grammar="mojo_assert.lark")

"""Runs every witness over its gated lines and keeps what each one took, so that nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from analyzer.ingest.crowd import MAX_PROCESSES, MAX_TEXTS, first_and_last
from analyzer.ingest.load import Loaded
from analyzer.model import BLOCKS, STEP_MARKS, FaultRecord, KernelLog, Reading, Record
from analyzer.schema import Loss
from analyzer.speech.mentions import is_code, mentioned
from analyzer.speech.quoted_blocks import continued_quotes
from analyzer.speech.quoted_values import quoted_only
from analyzer.witness import Witness, witnesses

LOSSES_SHOWN = 200
_SHOWN_CHARS = 300
_REPEATED = r"\[repeated ([0-9]+)x across cluster\]"


class Readings(msgspec.Struct, kw_only=True):
    """Records of all inputs in (source, line) order of their readers, and line numbers by source."""

    records: list[Record]
    parsed: dict[int, set[int]]
    continuation: dict[int, set[int]]
    unrecognised: dict[int, set[int]]
    losses: list[Loss]
    losses_omitted: int
    witnesses: dict[int, list[str]]
    step_marks: pl.DataFrame
    kernels: KernelLog = KernelLog()
    blocks: dict[int, pl.DataFrame] = {}


class _Lines(msgspec.Struct):
    """What became of the lines of one source. A line can be in several: the first of these counts."""

    parsed: set[int]
    continuation: set[int]
    lost: set[int]
    not_mine: set[int]
    blocks: pl.DataFrame

    def taken(self) -> set[int]:
        return self.parsed | self.continuation | self.lost | self.not_mine


def read_witnesses(loaded: Sequence[Loaded]) -> Readings:
    """Give each witness the lines that hold one of its gates.

    A gated line that no witness took is a ``Loss`` of the first witness whose gate it passed.
    """
    result = Readings(
        records=[],
        parsed={},
        continuation={},
        unrecognised={},
        losses=[],
        losses_omitted=0,
        witnesses={},
        step_marks=pl.DataFrame(schema=STEP_MARKS),
    )
    for one in loaded:
        _read_source(one, result)
    result.records.sort(key=lambda record: (record.source, record.line))
    result.losses_omitted = max(0, len(result.losses) - LOSSES_SHOWN)
    result.losses = result.losses[:LOSSES_SHOWN]
    return result


def _read_source(one: Loaded, result: Readings) -> None:
    source = one.source.index
    lines = _Lines(
        parsed=set(), continuation=set(), lost=set(), not_mine=set(), blocks=pl.DataFrame(schema=BLOCKS)
    )
    offered: list[tuple[Witness, pl.DataFrame]] = []
    for witness, gated, reading in _readings_of(one, lines.not_mine):
        _take(reading, gated, result, lines)
        if reading.parsed or reading.records or reading.kernels is not None:
            result.witnesses.setdefault(source, []).append(witness.name)
        offered.append((witness, gated))
    result.blocks[source] = lines.blocks
    lines.lost |= _untaken(source, offered, lines, result)
    lines.lost |= _cut_ops(one, result)
    lines.lost |= _crowd(one, offered, lines, result)
    result.parsed[source] = lines.parsed
    result.continuation[source] = lines.continuation - lines.parsed
    result.unrecognised[source] = lines.lost - lines.parsed - lines.continuation


def _readings_of(one: Loaded, quoted: set[int]) -> list[tuple[Witness, pl.DataFrame, Reading]]:
    """What each witness reads in its gated lines. A prompt about an error is no error.

    Args:
        one: The source.
        quoted: Gets the lines that only quote. Those of strings that go on over several lines are looked for
            where an error was read, which is seldom: then all is read once more without them.
    """
    quoted.update(quoted_only(one.gated, [gate for witness in witnesses() for gate in witness.gates]))
    found = _read_all(one, quoted)
    faults = [r for *_, reading in found for r in reading.records if isinstance(r, FaultRecord)]
    further = set(continued_quotes(one.gated, {fault.line for fault in faults}, one.reader))
    further |= mentioned(one.gated, {fault.line: fault.text for fault in faults})
    if not further - quoted:
        return found
    quoted.update(further)
    return _read_all(one, quoted)


def _read_all(one: Loaded, quoted: set[int]) -> list[tuple[Witness, pl.DataFrame, Reading]]:
    own = one.gated.filter(~pl.col("line").is_in(list(quoted))) if quoted else one.gated
    texts = own["text"].unique()
    found: list[tuple[Witness, pl.DataFrame, Reading]] = []
    for witness in sorted(witnesses(), key=lambda one: (one.read_last is not None, one.explains_ends)):
        passed = texts.filter(texts.str.contains_any(list(witness.gates)))
        ended = witness.explains_ends and any(reading.records for *_, reading in found)
        if passed.is_empty() and not ended:
            continue
        gated = own.filter(pl.col("text").is_in(passed.implode()))
        gated = gated if witness.bulk else first_and_last(gated, MAX_TEXTS)
        reading = witness.run(gated, one.reader, [other for *_, other in found])
        reading.records = complete(reading.records, gated)
        found.append((witness, gated, reading))
    return sorted(found, key=lambda one: one[0].name)


def complete(records: Sequence[Record], gated: pl.DataFrame) -> list[Record]:
    """Faults with what their line tells about the writer, and with the repeats that Ray left out.

    Ray prints ``[repeated 3x across cluster]`` behind a line that others printed as well (formats.md 6).

    Args:
        records: Of one witness and source.
        gated: ``LINES`` that the witness was given.
    """
    faults = [record for record in records if isinstance(record, FaultRecord)]
    if not faults:
        return list(records)
    wanted = gated.filter(pl.col("line").is_in([fault.line for fault in faults])).unique("line", keep="first")
    again = pl.col("raw").str.extract(_REPEATED).cast(pl.Int64, strict=False)
    rows = wanted.select("line", "clock", "time_ns", "pid", again)
    told = {line: rest for line, *rest in rows.iter_rows()}
    return [
        _completed(record, told[record.line])
        if isinstance(record, FaultRecord) and record.line in told
        else record
        for record in records
    ]


def _completed(fault: FaultRecord, told: list[Any]) -> FaultRecord:
    clock, time_ns, pid, again = told
    own_time = fault.time_ns is not None
    return msgspec.structs.replace(
        fault,
        clock=clock if fault.clock is None and (not own_time or fault.time_ns == time_ns) else fault.clock,
        time_ns=fault.time_ns if own_time else time_ns,
        pid=pid if fault.pid is None else fault.pid,
        count=fault.count + (again or 0),
    )


def _take(reading: Reading, gated: pl.DataFrame, result: Readings, lines: _Lines) -> None:
    """Keep what a reader gave. A loss stands for all lines of the same text; source code is none."""
    result.records.extend(reading.records)
    lines.parsed.update(reading.parsed)
    lines.continuation.update(reading.continuation)
    lines.not_mine.update(reading.not_mine)
    if reading.blocks is not None:
        lines.blocks = pl.concat([lines.blocks, reading.blocks])
    for loss in reading.losses:
        taken = lines.not_mine if is_code(loss.text) else lines.lost
        taken.add(loss.line)
        if loss.count > 1:
            taken.update(gated.filter(pl.col("text") == loss.text)["line"])
    result.losses.extend(loss for loss in reading.losses if not is_code(loss.text))
    if reading.step_marks is not None:
        result.step_marks = pl.concat([result.step_marks, reading.step_marks])
    if reading.kernels is not None:
        result.kernels = KernelLog(
            launches=pl.concat([result.kernels.launches, reading.kernels.launches]),
            prints=pl.concat([result.kernels.prints, reading.kernels.prints]),
        )


def _untaken(
    source: int, offered: Sequence[tuple[Witness, pl.DataFrame]], lines: _Lines, result: Readings
) -> set[int]:
    lost, taken = set[int](), lines.taken()
    for witness, gated in offered:
        left = gated.filter(~pl.col("line").is_in(lines.blocks["line"].implode()))
        left = left.filter(~pl.col("line").is_in(list(taken | lost)))
        for text, rows in left.group_by("text", maintain_order=True):
            numbers = rows["line"].to_list()
            if is_code(str(text[0])):
                continue
            lost.update(numbers)
            why = f"holds a literal of {witness.name} but is none of its forms"
            result.losses.append(
                _loss(source, numbers[0], witness.name, str(text[0]), why=why, count=len(numbers))
            )
    return lost


def _cut_ops(one: Loaded, result: Readings) -> set[int]:
    """Op heads without an id: the log was cut in the line, or another writer broke into it."""
    for line, name in one.cut_ops.iter_rows():
        result.losses.append(
            _loss(
                one.source.index,
                line,
                "max_ops",
                name if name.startswith("[OP]") else f"[OP] ... {name}",
                why="op record without an id: cut off",
                count=1,
            )
        )
    return set(one.cut_ops["line"].to_list())


def _crowd(
    one: Loaded, offered: Sequence[tuple[Witness, pl.DataFrame]], lines: _Lines, result: Readings
) -> set[int]:
    """Lines of which there were too many different ones: counted, and said where nobody overlooks it."""
    lost = set(one.crowd_ops["line"].to_list())
    if lost:
        line, name = one.crowd_ops.row(0)
        why = f"op records of more than {MAX_PROCESSES} processes: the rest is counted, not read"
        _tell(one, result, _loss(one.source.index, line, "max_ops", name, why=why, count=len(lost)))
    for witness, gated in offered:
        if witness.bulk or gated.height < MAX_TEXTS:
            continue
        passed = one.gated.filter(pl.col("text").str.contains_any(list(witness.gates)))
        taken = list(lines.taken() | lost)
        left = passed.filter(~pl.col("line").is_in(gated["line"].implode()) & ~pl.col("line").is_in(taken))
        if left.is_empty():
            continue
        lost.update(left["line"])
        line, text = left.select("line", "text").row(0)
        why = f"more than {MAX_TEXTS} different texts of {witness.name}: the rest is counted, not read"
        _tell(one, result, _loss(one.source.index, line, witness.name, text, why=why, count=left.height))
    return lost


def _tell(one: Loaded, result: Readings, loss: Loss) -> None:
    """A loss that comes first, and a note of the input."""
    result.losses.insert(0, loss)
    one.notes.append(f"{loss.why} ({loss.count} lines, from line {loss.line} on)")


def _loss(source: int, line: int, witness: str, text: str, *, why: str, count: int) -> Loss:
    return Loss(input=source, line=line, witness=witness, text=text[:_SHOWN_CHARS], why=why, count=count)

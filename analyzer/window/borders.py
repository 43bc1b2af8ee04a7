"""The window: launches after the last proof and before the report (design.md rule 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import polars as pl

from analyzer.model import FaultRecord, Line
from analyzer.schema import Border, Value
from analyzer.tables.sync_ops import SYNC_OPS
from analyzer.window.proofs import Proof, find_statement, find_values, skeleton, statement_templates
from analyzer.window.streams import (
    QueueBegin,
    begin_of,
    is_proven,
    joint_border,
    queue_of_proof,
    queues_of,
    with_queue,
)

STEP_FALLBACK = 2  # no proof found: the fault can be one step back (overlap scheduling)
_SEARCH_LINES = 40_000  # how far back a proof is looked for; a step of a large model has some thousand lines
_CHUNK_LINES = 2_048
_SHOWN = 80
_MAX_LAG = 2  # servers that overlap launch one step ahead, with speculative decoding two


class Lines(Protocol):
    """Reads lines of one source without their envelope."""

    def lines(self, first: int, last: int) -> list[Line]:
        """Lines ``first`` to ``last``."""


class Span(Value):
    """Lines between which launches can be guilty: ``begin_line`` < launch < ``end_line``.

    ``queues``: where several streams are known, the begin of each; ``begin_line`` is then the earliest, and
    ``proven`` = of all of them.
    """

    begin_line: int
    end_line: int
    begin: Border
    end: Border
    proven: bool
    queues: tuple[QueueBegin, ...] = ()

    def inside(self, ops: pl.DataFrame) -> pl.DataFrame:
        """The launches of ``ops`` that can be guilty."""
        launch = pl.col("launch_line")
        return self._of(ops, (launch > pl.col("_begin")) & (launch < self.end_line))

    def before(self, ops: pl.DataFrame) -> pl.DataFrame:
        """The launches before the window, whether anything proves them sound or not."""
        return self._of(ops, pl.col("launch_line") <= pl.col("_begin"))

    def cleared(self, ops: pl.DataFrame) -> pl.DataFrame:
        """The launches that a proof of their queue shows sound."""
        return self._of(ops, (pl.col("launch_line") <= pl.col("_begin")) & pl.col("_proven"))

    def _of(self, ops: pl.DataFrame, part: pl.Expr) -> pl.DataFrame:
        placed = with_queue(ops) if self.queues else ops
        begin, proven = begin_of(self.queues, self.begin_line), is_proven(self.queues, otherwise=self.proven)
        placed = placed.with_columns(begin.alias("_begin"), proven.alias("_proven"))
        return placed.filter(part).select(ops.columns)


def find_span(
    ops: pl.DataFrame,
    fault: FaultRecord,
    reported: dict[str, object] | None,
    lines: Lines,
    end_of_log: int | None,
    *,
    several_writers: bool = False,
) -> Span:
    """Find the borders of the window.

    Args:
        ops: ``TIMELINE`` of the process of the fault, in launch order, not empty.
        fault: The root fault.
        reported: Row of the op that a launch-time report names, or null.
        lines: Reader of the source that holds ``ops``.
        end_of_log: Line behind the last one, if the fault stands in another input than the ops; else null.
        several_writers: The lines of several processes carry no tag: a value that one of them printed says
            nothing about the device of another, so no proof is taken.
    """
    end_line, end = _end(fault, reported, end_of_log)
    before = ops.filter(pl.col("launch_line") < end_line)
    before = before if several_writers else _last_run(before)
    may_prove = before.height > 0 and not several_writers
    with_queues = with_queue(before) if may_prove and "device_stream" in before.columns else None
    if with_queues is not None and len(queues_of(with_queues)) > 1:
        return _of_queues(with_queues, fault, lines, end_line, end)
    proof = _last_proof(before, fault, lines, end_line) if may_prove else None
    synced = _last_sync(before, end_line) if may_prove else None
    if synced is not None and (proof is None or synced[1].line is None or synced[1].line > proof.line):
        return Span(begin_line=synced[0], end_line=end_line, begin=synced[1], end=end, proven=True)
    if proof is not None:
        begin_line, begin = _after_proof(before, proof, _lag(before, fault, lines, proof))
        if before.filter(pl.col("launch_line") > begin_line).height:
            return Span(begin_line=begin_line, end_line=end_line, begin=begin, end=end, proven=True)
    begin_line, begin = _fallback(before)
    return Span(begin_line=begin_line, end_line=end_line, begin=begin, end=end, proven=False)


def _end(
    fault: FaultRecord, reported: dict[str, object] | None, end_of_log: int | None
) -> tuple[int, Border]:
    if reported is not None and fault.site == "launch":
        line = int(str(reported["launch_line"]))
        text = f"the launch of {reported['name']} returned the error, so it and all later launches never ran"
        return line, Border(reason=text, line=line)
    if end_of_log is not None:
        return end_of_log, Border(
            reason=f"{fault.witness} has no place in the op log; the window ends with it"
        )
    return fault.block_first, Border(reason="the fault was met here", line=fault.line)


def _own_lines(ops: pl.DataFrame, fault: FaultRecord, lines: Lines, first: int, last: int) -> list[Line]:
    process = ops["process"][0]
    return [one for one in lines.lines(first, last) if one.process in (process, fault.process, "")]


def _of_queues(ops: pl.DataFrame, fault: FaultRecord, lines: Lines, end_line: int, end: Border) -> Span:
    """The window where work ran on several streams: each begins behind the last proof of its own.

    ``ops`` are the launches before the report, with their ``queue``; the rest as in ``find_span``.
    """
    proofs: dict[str | None, Proof] = {}
    wanted = queues_of(ops)
    for proof in _proofs(ops, fault, lines, end_line):
        proofs.setdefault(queue_of_proof(ops, proof), proof)
        if all(queue in proofs for queue in wanted):
            break
    fallback = _fallback(ops)
    begins = []
    for queue in wanted:
        own = proofs.get(queue)
        line, border = _after_proof(ops, own, _lag(ops, fault, lines, own)) if own else fallback
        begins.append(QueueBegin(queue=queue, begin_line=line, border=border, proven=own is not None))
    earliest = min(one.begin_line for one in begins)
    span = Span(
        begin_line=earliest,
        end_line=end_line,
        begin=joint_border(begins),
        end=end,
        proven=all(one.proven for one in begins),
        queues=tuple(begins),
    )
    if span.inside(ops).height:
        return span
    return Span(begin_line=fallback[0], end_line=end_line, begin=fallback[1], end=end, proven=False)


def _last_sync(ops: pl.DataFrame, end_line: int) -> tuple[int, Border] | None:
    """Where the window begins after the last op that gave the host a value; null = none."""
    done = ops.filter(
        pl.col("name").cast(pl.String).is_in(list(SYNC_OPS)) & (pl.col("completion_line") < end_line)
    ).tail(1)
    if done.is_empty():
        return None
    row = done.row(0, named=True)
    begin = int(row["launch_line"])
    if ops.filter(pl.col("launch_line") > begin).is_empty():
        return None
    text = f"{row['name']} (id {row['id']}) returned a value of the device: all work before it was sound"
    return begin, Border(reason=text, line=int(row["completion_line"]), proof="sync_op")


def _last_proof(ops: pl.DataFrame, fault: FaultRecord, lines: Lines, end_line: int) -> Proof | None:
    return next(_proofs(ops, fault, lines, end_line), None)


def _proofs(ops: pl.DataFrame, fault: FaultRecord, lines: Lines, end_line: int) -> Iterator[Proof]:
    """Walk back from the report over the lines that prove earlier work sound.

    A line of the statement that met the fault is believed before any other value line, even a later one:
    where the statement printed its steps, its silence says more than what another line seems to say.
    """
    templates = statement_templates(fault.python)
    stop = max(int(ops["launch_line"][0]), end_line - _SEARCH_LINES)
    last, told, values = end_line - 1, False, list[Proof]()
    while last >= stop:
        first = max(stop, last - _CHUNK_LINES + 1)
        own = _own_lines(ops, fault, lines, first, last)
        for proof in find_statement(own, templates):
            told = True
            yield proof
        if not templates:
            yield from find_values(own)
        elif not told:
            values.extend(find_values(own))
        last = first - 1
    if not told:
        yield from values


def _lag(ops: pl.DataFrame, fault: FaultRecord, lines: Lines, proof: Proof) -> int:
    """How many steps the server launches ahead of the values that it prints (overlap scheduling).

    The first line of that form in a run stands behind the launches of its own step, and of every further step
    that was launched ahead of it. More than ``_MAX_LAG`` means that the first steps print nothing; then the
    step number in the line tells, if it lags by as little.
    """
    start = int(ops["launch_line"][0])
    form = skeleton(proof.text)
    stop = min(proof.line, start + _SEARCH_LINES)
    for at in range(start, stop + 1, _CHUNK_LINES):
        own = _own_lines(ops, fault, lines, at, min(stop, at + _CHUNK_LINES - 1))
        first = next((line for line in own if skeleton(line.text.strip()) == form), None)
        if first is not None:
            ahead = ops.filter(pl.col("launch_line") < first.number)["step"].n_unique() - 1
            if 0 <= ahead <= _MAX_LAG:
                return ahead
            break
    before = ops.filter(pl.col("launch_line") < proof.line)["step"].drop_nulls()
    if proof.number is None or before.is_empty():
        return 0
    behind = int(before[-1]) - int(before[0]) - proof.number
    return behind if 0 < behind <= _MAX_LAG else 0


def _after_proof(ops: pl.DataFrame, proof: Proof, lag: int) -> tuple[int, Border]:
    """Where the window begins after a proof.

    A value printed between two steps proves the step before it. One printed inside a step, or by a server
    that launches ahead of its results, proves only what came before that.
    """
    how = "was printed earlier by the statement that met the fault" if proof.kind == "same_statement" else (
        "shows a value read back from the device"
    )  # fmt: skip
    shown = proof.text if len(proof.text) <= _SHOWN else proof.text[: _SHOWN - 3] + "..."
    border = Border(
        reason=f"'{shown}' {how}: all work before it was sound", line=proof.line, proof=proof.kind
    )
    after = ops.filter(pl.col("launch_line") > proof.line)
    before = ops.filter(pl.col("launch_line") < proof.line).tail(1)
    if after.is_empty() or before.is_empty() or after["step"][0] is None or before["step"][0] is None:
        return proof.line, border
    step = before["step"][0]
    behind = max(lag, 1 if after["step"][0] == step else 0)
    first = ops.filter(pl.col("step") > step - behind).head(1)
    if not behind or first.is_empty():
        return proof.line, border
    reason = (
        f"'{shown}' {how}, {behind} step behind the launches: work before step {first['step'][0]} was sound"
    )
    return int(first["launch_line"][0]) - 1, Border(reason=reason, line=proof.line, proof=proof.kind)


def _last_run(ops: pl.DataFrame) -> pl.DataFrame:
    """Launches of the run that met the fault: those of a server that was restarted are gone with it."""
    return ops.filter(pl.col("run") == ops["run"][-1]) if ops.height else ops


def _fallback(ops: pl.DataFrame) -> tuple[int, Border]:
    """No proof: the last two steps, or all ops of the run where steps cannot be told."""
    start = int(ops["launch_line"][0]) - 1 if ops.height else 0
    known = ops["step"].drop_nulls() if ops.height else pl.Series([], dtype=pl.Int32)
    if known.is_empty():
        reason = "no line proves any earlier work sound, and steps cannot be told apart"
        return start, Border(reason=reason)
    last = int(known.max())  # type: ignore[arg-type]
    first_step = last - STEP_FALLBACK + 1
    begin = ops.filter(pl.col("step") >= first_step)["launch_line"][0] - 1
    if first_step <= int(known.min()):  # type: ignore[arg-type]
        reason = "no line proves any earlier work sound: all launches so far stay possible"
        return start, Border(reason=reason)
    text = f"no line proves an earlier step sound; the last {STEP_FALLBACK} steps are taken"
    return int(begin), Border(reason=text)

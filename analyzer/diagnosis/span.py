"""The window as the result shows it: facts of its ops, its borders, and who is cleared."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.diagnosis.knowledge import Knowledge, Row
from analyzer.ingest.reader import LineReader
from analyzer.model import FaultRecord, OpFacts
from analyzer.schema import Border, Cleared, ClearedOp, Window
from analyzer.suspects.window import Span, find_span
from analyzer.timeline.facts import gather_facts, op_ref

WINDOW_LIMIT = 6_000  # records whose bodies are read; a larger window cannot be told apart by a person either


class OpenWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A window with the facts of its outer ops in launch order. ``window`` null = no launch is in it."""

    span: Span
    facts: list[OpFacts]
    window: Window | None
    cleared: Cleared


def open_window(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame, reported: Row | None) -> OpenWindow:
    """Find the window of a fault and read its ops. Ops on the host cannot cause a device fault.

    Args:
        known: All inputs.
        fault: The root fault.
        ops: ``TIMELINE`` of its process, not empty.
        reported: Row of the op that the report names, or null.
    """
    reader = known.readers[int(ops["source"][0])]
    span = _span(known, fault, ops, reported, reader)
    inside = span.inside(ops).tail(WINDOW_LIMIT)
    before = _same_run(span.before(ops), inside)
    facts = gather_facts(inside, before, reader, known.types)
    elsewhere = {op.launch_line: why for op in facts if (why := _other_device(op, fault))}
    if len(elsewhere) == len(facts):  # no op is left that could have failed: the device was read wrongly
        elsewhere = {}
    on_device = [op for op in facts if op.launch_line not in elsewhere]
    others = [ClearedOp(op=op.ref, reason=why) for op in facts if (why := elsewhere.get(op.launch_line))]
    mixed = known.timeline.untagged_writers  # whose launches these are is a guess: nobody is cleared by it
    return OpenWindow(
        span=span,
        facts=on_device,
        window=_value(inside, on_device, span) if on_device else None,
        cleared=_cleared(ops, span, reported, others) if not mixed else Cleared(count=0, ops=[], reasons=[]),
    )


def open_span(ops: pl.DataFrame, inside: pl.DataFrame, facts: list[OpFacts], span: Span) -> OpenWindow:
    """A window whose borders are known already.

    Args:
        ops: ``TIMELINE`` of the process.
        inside: Its rows in the window.
        facts: Of these rows.
        span: The borders.
    """
    window = _value(inside, facts, span) if facts else None
    return OpenWindow(span=span, facts=facts, window=window, cleared=_cleared(ops, span, None, []))


def _same_run(before: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """Launches before the window by the same server: what one before it ran says nothing about novelty."""
    return before.filter(pl.col("run").is_in(inside["run"].unique().implode()))


def _other_device(op: OpFacts, fault: FaultRecord) -> str | None:
    """Why an op cannot have caused a fault of a device, or null."""
    device = op.ref.device
    if device is None or op.ref.device == fault.device:
        return None
    if device.startswith("cpu"):
        return "runs on the host, not on the device"
    if fault.device is not None and not fault.device.startswith("cpu"):
        return f"runs on {device}, the fault is of {fault.device}"
    return None


def _span(
    known: Knowledge, fault: FaultRecord, ops: pl.DataFrame, reported: Row | None, reader: LineReader
) -> Span:
    if known.lines_window is not None:
        first, last = known.lines_window
        asked = Border(reason="asked for with --window")
        return Span(begin_line=first - 1, end_line=last + 1, begin=asked, end=asked, proven=False)
    outside = None if ops["source"][0] == fault.source else reader.total_lines + 1
    mixed = known.timeline.untagged_writers
    return find_span(ops, fault, reported, reader, outside, several_writers=mixed)


def _value(inside: pl.DataFrame, facts: Sequence[OpFacts], span: Span) -> Window:
    devices = {op.ref.device for op in facts if op.ref.device}
    steps = sorted({op.ref.step for op in facts if op.ref.step is not None})
    last = facts[-1].inner[-1] if facts[-1].inner else facts[-1].ref
    return Window(
        first_op=facts[0].ref,
        last_op=last,
        size=inside.height,
        size_outer=len(facts),
        steps=steps,
        device=devices.pop() if len(devices) == 1 else None,
        begin=span.begin,
        end=span.end,
        proven_begin=span.proven,
        ops=[op.ref for op in facts],
    )


def _cleared(ops: pl.DataFrame, span: Span, reported: Row | None, elsewhere: Sequence[ClearedOp]) -> Cleared:
    before = span.cleared(ops).height  # without a proof nobody is
    after = _never_ran(ops, span)
    named_ops, reasons = [], []
    if before:
        where = f" (line {span.begin.line})" if span.begin.line else ""
        reasons.append(f"{launches(before)} before the window: {span.begin.reason}{where}")
    if reported is not None and int(str(reported["launch_line"])) >= span.end_line:
        text = "its launch call returned the error of earlier work: it never ran"
        named_ops.append(ClearedOp(op=op_ref(reported), reason=text))
        reasons.append(f"{launches(after)} from the reported one on: never ran")
    elif after:
        reasons.append(f"{launches(after)} after the report: never ran")
    named_ops.extend(elsewhere)
    return Cleared(count=before + after + len(elsewhere), ops=named_ops, reasons=reasons)


def _never_ran(ops: pl.DataFrame, span: Span) -> int:
    """Launches of the same run from the end of the window on.

    None where nothing stands before the report (the two output streams are not in order of time), and after a
    restart: the new server did run them.
    """
    launch = pl.col("launch_line")
    inside = ops.filter((launch > span.begin_line) & (launch < span.end_line))
    if inside.is_empty():
        return 0
    return ops.filter((launch >= span.end_line) & (pl.col("run") == inside["run"][-1])).height


def launches(count: int) -> str:
    """``1 launch``, ``288 launches``."""
    return "1 launch" if count == 1 else f"{count} launches"

"""The window as the result shows it: facts of its ops, its borders, and who is cleared."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.errors import UsageError
from analyzer.ingest.reader import LineReader
from analyzer.knowledge import Knowledge, Row
from analyzer.model import FaultRecord, OpFacts
from analyzer.schema import ASKED_WINDOW, Border, Cleared, ClearedOp, Window
from analyzer.timeline.facts import gather_facts, op_ref
from analyzer.window.borders import Span, find_span

ALL_CLEARED = "the log clears all of"  # among the remarks of a window without a possible launch
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
    own = _own_span(known, fault, ops, reported, reader)
    span = own if known.lines_window is None else _asked_span(known.lines_window, own, ops)
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
        cleared=_cleared(ops, own, reported, others, span)
        if not mixed
        else Cleared(count=0, ops=[], reasons=[]),
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
    return OpenWindow(span=span, facts=facts, window=window, cleared=_cleared(ops, span, None, [], span))


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


def _own_span(
    known: Knowledge, fault: FaultRecord, ops: pl.DataFrame, reported: Row | None, reader: LineReader
) -> Span:
    """The borders that the log itself shows, whatever window was asked for."""
    outside = None if ops["source"][0] == fault.source else reader.total_lines + 1
    mixed = known.timeline.untagged_writers
    return find_span(ops, fault, reported, reader, outside, several_writers=mixed)


def _asked_span(lines: tuple[int, int], own: Span, ops: pl.DataFrame) -> Span:
    """The window of ``--window``, without launches that never ran; its begin says what it leaves out.

    Args:
        lines: First and last line, as asked for.
        own: The borders that the log shows.
        ops: ``TIMELINE`` of the process of the fault.

    Raises:
        UsageError: No launch in these lines can have caused the fault.
    """
    first, last = lines
    launch = pl.col("launch_line")
    end_line, end = last + 1, Border(reason=ASKED_WINDOW)
    if not own.inside(ops).is_empty() and end_line > own.end_line:  # else the report's place tells nothing
        end_line, end = own.end_line, own.end
    if first >= end_line:
        raise UsageError(
            f"--window {first}:{last}: nothing in it can be guilty: {end.reason} (line {end.line})"
        )
    asked = ops.filter((launch >= first) & (launch < end_line))
    if asked.filter(pl.col("parent").is_null()).is_empty():
        raise UsageError(
            f"--window {first}:{last}: no op of the process that failed is launched there, "
            "at most a part of one: begin at its line"
        )
    begin = Border(reason="; ".join([ASKED_WINDOW, *_remarks(own, ops, asked)]))
    return Span(begin_line=first - 1, end_line=end_line, begin=begin, end=end, proven=False)


def _remarks(own: Span, ops: pl.DataFrame, asked: pl.DataFrame) -> list[str]:
    """What speaks against the window that was asked for: sound launches in it, possible ones outside."""
    keys, told = ["run", "launch_line"], []
    sound = own.cleared(ops)
    within = asked.join(sound, on=keys, how="semi").height
    if within:
        part = ALL_CLEARED if within == asked.height else f"the log clears {within} of"
        where = f" (line {own.begin.line})" if own.begin.line else ""
        told.append(f"{part} its {launches(asked.height)}: {own.begin.reason}{where}")
    possible = ops.filter((pl.col("launch_line") < own.end_line) & (pl.col("run") == asked["run"][-1]))
    outside = possible.join(sound, on=keys, how="anti").join(asked, on=keys, how="anti")
    if outside.height:
        lines = outside["launch_line"].sort()
        told.append(
            f"it leaves out {launches(outside.height)} before the report that nothing clears "
            f"(between line {lines[0]} and line {lines[-1]})"
        )
    return told


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


def _cleared(
    ops: pl.DataFrame, own: Span, reported: Row | None, elsewhere: Sequence[ClearedOp], span: Span
) -> Cleared:
    """Whom the log clears. What only stands outside a window that was asked for is not cleared.

    Args:
        ops: ``TIMELINE`` of the process.
        own: The borders that the log shows: they clear.
        reported: Row of the op that the report names, or null.
        elsewhere: Ops of the window that cannot have done it.
        span: The window; its launches are asked about, even where the log clears them.
    """
    sound = own.cleared(ops).join(span.inside(ops), on=["run", "launch_line"], how="anti").height
    after = _never_ran(ops, own)
    named_ops, reasons = [], []
    if sound:  # without a proof nobody is
        side = "before" if span is own else "outside"
        where = f" (line {own.begin.line})" if own.begin.line else ""
        reasons.append(f"{launches(sound)} {side} the window: {own.begin.reason}{where}")
    late = after
    if reported is not None and int(str(reported["launch_line"])) >= own.end_line:
        text = "its launch call returned the error of earlier work: it never ran"
        named_ops.append(ClearedOp(op=op_ref(reported), reason=text))
        late -= 1
    if late:
        reasons.append(
            f"{launches(late)} after {'the reported one' if named_ops else 'the report'}: never ran"
        )
    named_ops.extend(elsewhere)
    return Cleared(count=sound + after + len(elsewhere), ops=named_ops, reasons=reasons)


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

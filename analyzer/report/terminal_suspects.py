"""The window, who in it can be guilty and why, and who cannot: rows of the terminal report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.report.terminal_rows import Row, count_of, heading, joined, named, percent, place_of, say
from analyzer.schema import OpRef, Reason, Result, SourceFrame, Suspect

REASONS_SHOWN = 3
SOURCES_SHOWN = 3  # a fused op has one for each op that went into it
LINES_SHOWN = 3
CLEARED_SHOWN = 2


def suspect_rows(result: Result, top: int) -> Iterator[Row]:
    """The window and the first suspects; the others are counted."""
    suspects = sorted(result.suspects, key=lambda suspect: suspect.rank)
    window = _window(result)
    if not suspects and window is None:
        return
    yield heading("Suspects" if suspects else "Window")
    if window is not None:
        yield window
    for suspect in suspects[: max(top, 0)]:
        yield from _suspect(result, suspect)
    rest = suspects[max(top, 0) :]
    if rest:
        share = sum(suspect.share for suspect in rest)
        yield Row(text=say(f"and {len(rest)} more, {percent(share)} together"), hang="  ")


def _window(result: Result) -> Row | None:
    window = result.window
    if window is None:
        return None
    first, last = window.first_op, window.last_op
    steps = f"step {_span(window.steps)}" if window.steps else None
    ids = f"ids {first.id} to {last.id}" if first.id is not None and last.id is not None else None
    size = f"{window.size_outer} of {window.size} launches are outer ops"
    begin = joined((window.begin.reason, place_of(result, first.input, window.begin.line)))
    guess = "" if window.proven_begin else "not proven: "
    text = joined((ids, steps, window.device, size)) + f"; begins: {guess}{begin}"
    return Row(text=say((text, "dim")), hang="  window: ")


def _span(steps: Sequence[int]) -> str:
    return str(steps[0]) if len(steps) == 1 else f"{min(steps)} to {max(steps)}"


def _suspect(result: Result, suspect: Suspect) -> Iterator[Row]:
    op = suspect.op
    hang = f"  {suspect.rank}. "
    inner = " " * len(hang)
    yield Row(text=say((op.name, "bold"), " · ", (percent(suspect.share), "yellow")), hang=hang)
    yield Row(text=say(_op_facts(result, op)), hang=inner)
    yield from _made_by(suspect.source, inner)
    strongest = sorted(suspect.reasons, key=lambda reason: -abs(reason.weight))
    for reason in strongest[:REASONS_SHOWN]:
        yield _reason(reason, inner)
    folded = len(strongest) - REASONS_SHOWN
    if folded > 0:
        yield Row(text=say((f"{count_of(folded, 'weaker reason')} not shown", "dim")), hang=inner + "  ")


def _op_facts(result: Result, op: OpRef) -> str:
    identity = None if op.id is None else f"id {op.id}"
    step = None if op.step is None or op.step < 0 else f"step {op.step}"
    process = f"process {op.process}" if op.process else None
    return joined((identity, step, op.device, process, place_of(result, op.input, op.line))) or "no op record"


def _made_by(source: Sequence[SourceFrame], inner: str) -> Iterator[Row]:
    for frame in source[:SOURCES_SHOWN]:
        yield Row(text=say((f"{frame.file}:{frame.line}", "cyan"), f" in {frame.function}"), hang=inner)
        if frame.text:
            yield Row(text=say((frame.text.strip(), "cyan")), hang=inner + "  ", fit="cut")
    folded = len(source) - SOURCES_SHOWN
    if folded > 0:
        yield Row(text=say((f"and {count_of(folded, 'more source line')}", "dim")), hang=inner + "  ")


def _reason(reason: Reason, inner: str) -> Row:
    sign = "+ " if reason.weight > 0 else "- " if reason.weight < 0 else "= "
    lines = [line for line in reason.lines if f"line {line}" not in reason.text]
    return Row(
        text=say((reason.text, "" if reason.weight > 0 else "dim"), (_cited(lines), "dim")),
        hang=inner + sign,
    )


def _cited(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    shown = ", ".join(str(line) for line in lines[:LINES_SHOWN])
    more = ", ..." if len(lines) > LINES_SHOWN else ""
    return f" ({'line' if len(lines) == 1 else 'lines'} {shown}{more})"


def cleared_rows(result: Result) -> Iterator[Row]:
    """Who was shown innocent, and by what."""
    cleared = result.cleared
    if not cleared.count:
        return
    yield heading(f"Cleared: {count_of(cleared.count, 'op')}")
    for one in cleared.ops[:CLEARED_SHOWN]:
        yield Row(text=say((named(one.op), "green"), f": {one.reason}"), hang="  ")
    for reason in cleared.reasons[:CLEARED_SHOWN]:
        yield Row(text=say(reason), hang="  ")

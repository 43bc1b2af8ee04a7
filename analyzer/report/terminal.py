"""The terminal report: what an engineer on call needs in ten seconds, in that order.

Verdict, what failed, where it was reported and whether to believe that, first suspects, what was
cleared, what to run next, accounting. Everything that comes from a log is untrusted: it is printed as
``rich.Text`` (never parsed as markup) with control characters as escapes.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Literal

from rich.console import Console
from rich.text import Text

from analyzer.schema import Fault, OpRef, Reason, Result, SourceFrame, Suspect, Value

MIN_WIDTH = 20  # below this a wrapped op name is unreadable anyway
REASONS_SHOWN = 3
SOURCES_SHOWN = 3  # a fused op has one for each op that went into it
LINES_SHOWN = 3
TEXT_SHOWN = 210  # characters of the error: three lines of 80 columns
CLEARED_SHOWN = 2
LOSSES_SHOWN = 2

CONFIDENCE_STYLE = {
    "proven": "bold red",
    "confirmed": "bold red",
    "likely": "bold yellow",
    "ranked": "bold yellow",
    "undecided": "bold magenta",
    "none": "bold green",
}
# Characters that move the cursor or reorder text: control, format (bidi), surrogate, line separators.
HOSTILE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Row(Value):
    """One paragraph: ``hang`` stands before its first line, the rest is indented to match.

    ``fit`` says what to do with text wider than the terminal: wrap it, cut it, or leave it whole
    (commands, so that they can be copied).
    """

    text: Text
    hang: str = ""
    fit: Literal["wrap", "cut", "whole"] = "wrap"


def render(result: Result, *, width: int = 80, color: bool = False, top: int = 3) -> str:
    """The report as text.

    Args:
        result: The analysis.
        width: Columns of the terminal. No line is wider, except commands.
        color: Whether to use ANSI colours.
        top: How many suspects to show.

    Returns:
        Lines, each with a newline at its end.
    """
    console = Console(
        file=io.StringIO(),
        width=max(width, MIN_WIDTH),
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},  # NO_COLOR, COLUMNS: the caller has decided
    )
    sections = (
        _verdict(result),
        _failure(result),
        _suspects(result, top),
        _cleared(result),
        _replay(result),
        _next_steps(result),
        _footer(result),
    )
    with console.capture() as captured:
        filled = (rows for rows in map(list, sections) if rows)
        for number, rows in enumerate(filled):
            if number:
                console.print()
            for row in rows:
                _print(console, row)
    return captured.get()


def _print(console: Console, row: Row) -> None:
    room = max(console.width - len(row.hang), 1)
    text = row.text.copy()
    if row.fit == "cut":
        text.truncate(room, overflow="ellipsis")
    lines = text.wrap(console, room) if row.fit == "wrap" else [text]
    for number, line in enumerate(lines):
        line.rstrip()
        before = row.hang if number == 0 else " " * len(row.hang)
        console.print(Text(before) + line, soft_wrap=True)


def plain(text: str) -> str:
    """Text of a log made harmless: what moves the cursor or reorders text becomes a visible escape."""
    return "".join(
        _escape(char) if unicodedata.category(char) in HOSTILE_CATEGORIES else char for char in text
    )


def _escape(char: str) -> str:
    code = ord(char)
    if char in SHORT_ESCAPES:
        return SHORT_ESCAPES[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _say(*parts: str | tuple[str, str]) -> Text:
    """One text of plain and ``(text, style)`` parts, each made harmless."""
    text = Text()
    for part in parts:
        words, style = (part, "") if isinstance(part, str) else part
        text.append(plain(words), style=style or None)
    return text


def _heading(words: str) -> Row:
    return Row(text=Text(words, style="bold"))


def _joined(parts: Iterable[str | None]) -> str:
    return " · ".join(part for part in parts if part)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _named(op: OpRef) -> str:
    return op.name if op.id is None else f"{op.name} (id {op.id})"


def _place(result: Result, source: int, line: int | None) -> str | None:
    """``line 12``, or ``serve.log:12`` where several inputs were read; null without a line."""
    if line is None:
        return None
    if len(result.inputs) < 2 or source >= len(result.inputs):
        return f"line {line}"
    return f"{PurePosixPath(result.inputs[source].path).name}:{line}"


def _verdict(result: Result) -> Iterator[Row]:
    conclusion = result.conclusion
    word = "no fault" if conclusion.confidence == "none" and not result.faults else conclusion.confidence
    style = CONFIDENCE_STYLE[conclusion.confidence]
    yield Row(text=_say((word.upper(), style), ": ", (conclusion.statement, "bold")))
    if conclusion.messenger is not None:
        messenger = _named(conclusion.messenger)
        yield Row(
            text=_say((messenger, "bold"), " is the messenger: it met what an earlier op made"), hang="  "
        )
    for note in conclusion.notes:
        yield Row(text=_say(note), hang="  ")


def _failure(result: Result) -> Iterator[Row]:
    roots = [fault for fault in result.faults if fault.role == "root"]
    if not roots:
        return
    fault = roots[0]
    code = " ".join(part for part in (fault.vendor, str(fault.code or ""), fault.name) if part)
    where = (fault.device, _process(fault), _place(result, fault.input, fault.line))
    yield _heading("What failed")
    yield Row(text=_say((fault.kind, "red"), " · ", _joined((code, *where))), hang="  ")
    yield Row(text=_say((_shortened(fault.text), "dim")), hang="  ")
    yield from _report_place(result, fault)
    after = sum(one.count for one in result.faults if one.role in {"cascade", "teardown"})
    beside = sum(one.count for one in result.faults if one.role == "bystander")
    extra = (
        f"{_count(after, 'report')} caused by this one" if after else None,
        f"{_count(beside, 'report')} of others" if beside else None,
        _other_roots(result, roots),
    )
    if any(extra):
        yield Row(text=_say(_joined(extra)), hang="  ")


def _shortened(text: str) -> str:
    """The middle of a long error is a signature; what happened stands at its end (observed.md 14)."""
    if len(text) <= TEXT_SHOWN:
        return text
    return f"{text[: TEXT_SHOWN // 3]} ... {text[-TEXT_SHOWN * 2 // 3 :]}"


def _process(fault: Fault) -> str | None:
    rank = None if fault.rank is None else f"rank {fault.rank}"
    return _joined((f"process {fault.process}" if fault.process else None, rank)) or None


def _other_roots(result: Result, roots: Sequence[Fault]) -> str | None:
    places = [_place(result, fault.input, fault.line) or "" for fault in roots[1:]]
    return f"other root faults: {', '.join(places)}" if places else None


def _report_place(result: Result, fault: Fault) -> Iterator[Row]:
    at = fault.reported_at
    python = f"{at.python.file}:{at.python.line} in {at.python.function}" if at.python else None
    kernel = at.kernel or fault.kernel
    op = None if at.op_id is None else _joined((f"op id {at.op_id}", _place(result, fault.input, at.op_line)))
    named = _joined((f"kernel {kernel}" if kernel else None, op, at.site, python))
    yield Row(text=_say(named or "no kernel and no Python line is named"), hang="  reported at: ")
    if fault.trust == "exact":
        belief = ("believe it", "green")
    else:
        belief = ("do not believe it: the fault is older than its report", "yellow")
    why = f" ({fault.trust_reason})" if fault.trust_reason else ""
    yield Row(text=_say(belief, why), hang="  ")


def _suspects(result: Result, top: int) -> Iterator[Row]:
    suspects = sorted(result.suspects, key=lambda suspect: suspect.rank)
    window = _window(result)
    if not suspects and window is None:
        return
    yield _heading("Suspects" if suspects else "Window")
    if window is not None:
        yield window
    for suspect in suspects[: max(top, 0)]:
        yield from _suspect(result, suspect)
    rest = suspects[max(top, 0) :]
    if rest:
        share = sum(suspect.share for suspect in rest)
        yield Row(text=_say(f"and {len(rest)} more, {_percent(share)} together"), hang="  ")


def _window(result: Result) -> Row | None:
    window = result.window
    if window is None:
        return None
    first, last = window.first_op, window.last_op
    steps = f"step {_span(window.steps)}" if window.steps else None
    ids = f"ids {first.id} to {last.id}" if first.id is not None and last.id is not None else None
    size = f"{window.size_outer} of {window.size} launches are outer ops"
    begin = _joined((window.begin.reason, _place(result, first.input, window.begin.line)))
    guess = "" if window.proven_begin else "not proven: "
    text = _joined((ids, steps, window.device, size)) + f"; begins: {guess}{begin}"
    return Row(text=_say((text, "dim")), hang="  window: ")


def _span(steps: Sequence[int]) -> str:
    return str(steps[0]) if len(steps) == 1 else f"{min(steps)} to {max(steps)}"


def _suspect(result: Result, suspect: Suspect) -> Iterator[Row]:
    op = suspect.op
    hang = f"  {suspect.rank}. "
    inner = " " * len(hang)
    yield Row(text=_say((op.name, "bold"), " · ", (_percent(suspect.share), "yellow")), hang=hang)
    yield Row(text=_say(_op_facts(result, op)), hang=inner)
    yield from _made_by(suspect.source, inner)
    strongest = sorted(suspect.reasons, key=lambda reason: -abs(reason.weight))
    for reason in strongest[:REASONS_SHOWN]:
        yield _reason(reason, inner)
    folded = len(strongest) - REASONS_SHOWN
    if folded > 0:
        yield Row(text=_say((f"{_count(folded, 'weaker reason')} not shown", "dim")), hang=inner + "  ")


def _op_facts(result: Result, op: OpRef) -> str:
    identity = None if op.id is None else f"id {op.id}"
    step = None if op.step is None or op.step < 0 else f"step {op.step}"
    process = f"process {op.process}" if op.process else None
    return _joined((identity, step, op.device, process, _place(result, op.input, op.line))) or "no op record"


def _made_by(source: Sequence[SourceFrame], inner: str) -> Iterator[Row]:
    for frame in source[:SOURCES_SHOWN]:
        yield Row(text=_say((f"{frame.file}:{frame.line}", "cyan"), f" in {frame.function}"), hang=inner)
        if frame.text:
            yield Row(text=_say((frame.text.strip(), "cyan")), hang=inner + "  ", fit="cut")
    folded = len(source) - SOURCES_SHOWN
    if folded > 0:
        yield Row(text=_say((f"and {_count(folded, 'more source line')}", "dim")), hang=inner + "  ")


def _reason(reason: Reason, inner: str) -> Row:
    sign = "+ " if reason.weight > 0 else "- " if reason.weight < 0 else "= "
    lines = [line for line in reason.lines if f"line {line}" not in reason.text]
    return Row(
        text=_say((reason.text, "" if reason.weight > 0 else "dim"), (_cited(lines), "dim")),
        hang=inner + sign,
    )


def _cited(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    shown = ", ".join(str(line) for line in lines[:LINES_SHOWN])
    more = ", ..." if len(lines) > LINES_SHOWN else ""
    return f" ({'line' if len(lines) == 1 else 'lines'} {shown}{more})"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 or share == 0 else "<1%"


def _cleared(result: Result) -> Iterator[Row]:
    cleared = result.cleared
    if not cleared.count:
        return
    yield _heading(f"Cleared: {_count(cleared.count, 'op')}")
    for one in cleared.ops[:CLEARED_SHOWN]:
        yield Row(text=_say((_named(one.op), "green"), f": {one.reason}"), hang="  ")
    for reason in cleared.reasons[:CLEARED_SHOWN]:
        yield Row(text=_say(reason), hang="  ")


def _replay(result: Result) -> Iterator[Row]:
    replay = result.replay
    if replay is None:
        return
    yield _heading("Replay")
    yield Row(text=_say((replay.verdict or "interrupted", "bold"), f": {replay.statement}"), hang="  ")
    if replay.producer is not None:
        yield Row(text=_say(f"made by {replay.producer.text()}: it wrote the index that failed"), hang="  ")
    for one in replay.attempts:
        error = f": {one.error}" if one.error else ""
        what = f"attempt {one.number}, {one.rung}: {one.outcome} in {one.duration_s:.1f} s{error}"
        yield Row(text=_say(what), hang="  ", fit="cut")
    for text in replay.rules_out:
        yield Row(text=_say(f"rules out {text}"), hang="  ")
    for text in replay.skipped:
        yield Row(text=_say(f"not tried: {text}"), hang="  ")


def _next_steps(result: Result) -> Iterator[Row]:
    if not result.next_steps:
        return
    yield _heading("Run next")
    for step in result.next_steps:
        yield Row(text=_say(step.why), hang="  # ")
        yield Row(text=_say((step.command, "bold cyan")), hang="  ", fit="whole")


def _footer(result: Result) -> Iterator[Row]:
    counts = result.accounting
    lines = (
        f"{counts.total_lines} lines: {counts.parsed} parsed, {counts.continuation} continuation, "
        f"{counts.ignored} ignored, {counts.unrecognised} unrecognised"
    )
    known = result.timeline
    steps = f" in {_count(known.steps, 'step')}" if known.steps else ""
    ops = f"{_count(known.ops, 'op')}{steps}" if known.ops else None
    yield Row(text=_say((_joined((lines, ops, _modes(result))), "dim")))
    for warning in _warnings(result):
        yield Row(text=_say(warning), hang="warning: ")


def _modes(result: Result) -> str | None:
    modes = result.modes
    flags = {
        "device-sync-mode": modes.device_sync_mode,
        "launch blocking": modes.launch_blocking,
        "core dump": modes.coredump,
        "source tracebacks": modes.source_tracebacks,
    }
    known = [f"{name} {'on' if value else 'off'}" for name, value in flags.items() if value is not None]
    if modes.op_log_level is not None:
        known.append(f"op log {modes.op_log_level}")
    return f"modes: {', '.join(known)}" if known else None


def _warnings(result: Result) -> Iterator[str]:
    lost = sum(loss.count for loss in result.losses) + result.losses_omitted
    if lost:
        yield f"{_count(lost, 'text')} passed a gate, but no grammar read it:"
    for loss in islice(result.losses, LOSSES_SHOWN):
        yield f"{_place(result, loss.input, loss.line)}, {loss.witness}: {loss.why}"
    for check in result.modes.nan_check:
        if check.checked < check.of:
            yield (
                f"the NaN check looked at {check.checked} of {check.of} outputs of {check.graph} "
                f"(stride {check.stride}): a clean run proves little"
            )
    for one in result.inputs:
        for note in one.notes:
            yield f"{PurePosixPath(one.path).name}: {note}"

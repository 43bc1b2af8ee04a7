"""The terminal report: what an engineer on call needs in ten seconds, in that order.

Verdict, what failed, where it was reported and whether to believe that, first suspects, what was
cleared, what to run next, accounting. Everything that comes from a log is untrusted: it is printed as
``rich.Text`` (never parsed as markup) with control characters as escapes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath

from rich.console import Console
from rich.text import Text

from analyzer.replay_result import ReplayAttempt
from analyzer.report.replayed import replayed_text
from analyzer.report.story.replayed import FIDELITY_WORDS, OUTCOME_WORDS, RUNG_WORDS
from analyzer.report.terminal_faults import kind_of, other_fault_rows
from analyzer.report.terminal_rows import Row, count_of, heading, joined, named, place_of, say
from analyzer.report.terminal_suspects import cleared_rows, suspect_rows
from analyzer.schema import Fault, Result

MIN_WIDTH = 20  # below this a wrapped op name is unreadable anyway
TEXT_SHOWN = 210  # characters of the error: three lines of 80 columns
LOSSES_SHOWN = 2
NAMES_SHOWN = 5

CONFIDENCE_STYLE = {
    "proven": "bold red",
    "confirmed": "bold red",
    "likely": "bold yellow",
    "ranked": "bold yellow",
    "undecided": "bold magenta",
    "none": "bold green",
}


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
        suspect_rows(result, top),
        cleared_rows(result),
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


def _verdict(result: Result) -> Iterator[Row]:
    conclusion = result.conclusion
    style = CONFIDENCE_STYLE[conclusion.confidence]
    yield Row(text=say((conclusion.confidence.upper(), style), ": ", (conclusion.statement, "bold")))
    if conclusion.messenger is not None:
        messenger = named(conclusion.messenger)
        yield Row(
            text=say((messenger, "bold"), " is the messenger: it met what an earlier op made"), hang="  "
        )
    for note in conclusion.notes:
        yield Row(text=say(note), hang="  ")


def _failure(result: Result) -> Iterator[Row]:
    roots = [fault for fault in result.faults if fault.role == "root"]
    if not roots:
        return
    fault = roots[0]
    code = " ".join(part for part in (fault.vendor, str(fault.code or ""), fault.name) if part)
    where = (fault.device, _process(fault), place_of(result, fault.input, fault.line))
    yield heading("What failed")
    yield Row(text=say((kind_of(fault), "red"), " · ", joined((code, *where))), hang="  ")
    if fault.text in result.conclusion.statement:  # the verdict above has it whole
        yield Row(text=say((fault.text, "dim")), hang="  ", fit="cut")
    else:
        yield Row(text=say((_shortened(fault.text), "dim")), hang="  ")
    yield from _report_place(result, fault)
    yield from other_fault_rows(result)


def _shortened(text: str) -> str:
    """The middle of a long error is a signature; what happened stands at its end (observed.md 14)."""
    if len(text) <= TEXT_SHOWN:
        return text
    return f"{text[: TEXT_SHOWN // 3]} ... {text[-TEXT_SHOWN * 2 // 3 :]}"


def _process(fault: Fault) -> str | None:
    rank = None if fault.rank is None else f"rank {fault.rank}"
    return joined((f"process {fault.process}" if fault.process else None, rank)) or None


def _report_place(result: Result, fault: Fault) -> Iterator[Row]:
    at = fault.reported_at
    python = f"{at.python.file}:{at.python.line} in {at.python.function}" if at.python else None
    kernel = at.kernel or fault.kernel
    op = (
        None if at.op_id is None else joined((f"op id {at.op_id}", place_of(result, fault.input, at.op_line)))
    )
    named = joined((f"kernel {kernel}" if kernel else None, op, at.site, python))
    yield Row(text=say(named or "no kernel and no Python line is named"), hang="  reported at: ")
    if fault.trust == "exact":
        belief = ("believe it", "green")
    else:
        belief = ("do not believe it: the fault is older than its report", "yellow")
    why = f" ({fault.trust_reason})" if fault.trust_reason else ""
    yield Row(text=say(belief, why), hang="  ")


def _replay(result: Result) -> Iterator[Row]:
    replay = result.replay
    if replay is None:
        return
    yield heading("Replay")
    yield Row(text=say((replay.verdict or "interrupted", "bold"), f": {replay.statement}"), hang="  ")
    if replay.producer is not None:
        yield Row(text=say(f"made by {replay.producer.text()}: it wrote the index that failed"), hang="  ")
    for one in replay.attempts:
        yield Row(text=say(_attempt(one)), hang="  ", fit="cut")
    if replay.folder is not None:
        yield Row(text=say(f"outputs of the attempts: {replay.folder}"), hang="  ")
    executed = replayed_text(replay)
    if executed is not None:
        yield Row(text=say(executed), hang="  ")
    elif replay.fidelity is not None:
        yield Row(text=say(f"inputs: {FIDELITY_WORDS[replay.fidelity]}"), hang="  ")
    for text in replay.rules_out:
        yield Row(text=say(f"rules out {text}"), hang="  ")
    for text in replay.skipped:
        yield Row(text=say(f"not tried: {text}"), hang="  ")
    if replay.repro is not None:
        told = "program to run" if replay.repro_verified is False else "fails by itself"
        yield Row(text=say(f"{told}: {replay.repro}"), hang="  ")


def _attempt(one: ReplayAttempt) -> str:
    error = f": {one.error}" if one.error else ""
    inputs = f", {FIDELITY_WORDS[one.fidelity]}" if one.fidelity is not None else ""
    outcome = OUTCOME_WORDS.get(one.outcome, one.outcome)
    return f"attempt {one.number}, {RUNG_WORDS[one.rung]}{inputs}: {outcome} in {one.duration_s:.1f} s{error}"


def _next_steps(result: Result) -> Iterator[Row]:
    if not result.next_steps:
        return
    yield heading("Run next")
    for step in result.next_steps:
        yield Row(text=say(step.why), hang="  # ")
        yield Row(text=say((step.command, "bold cyan")), hang="  ", fit="whole")


def _footer(result: Result) -> Iterator[Row]:
    counts = result.accounting
    lines = (
        f"{count_of(counts.total_lines, 'line')}: {counts.parsed} parsed, {counts.continuation} "
        f"continuation, {counts.ignored} ignored, {counts.unrecognised} unrecognised"
    )
    known = result.timeline
    steps = f" in {count_of(known.steps, 'step')}" if known.steps else ""
    ops = f"{count_of(known.ops, 'op')}{steps}" if known.ops else None
    yield Row(text=say((joined((lines, ops, _modes(result))), "dim")))
    for warning in _warnings(result):
        yield Row(text=say(warning), hang="warning: ")


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
        yield f"{count_of(lost, 'text')} passed a gate, but no grammar read it:"
    for loss in islice(result.losses, LOSSES_SHOWN):
        yield f"{place_of(result, loss.input, loss.line)}, {loss.witness}: {loss.why}"
    for check in result.modes.nan_check:
        if check.checked < check.of:
            yield (
                f"the NaN check looked at {check.checked} of {check.of} outputs of {check.graph} "
                f"(stride {check.stride}): a clean run proves little"
            )
    for one in result.inputs:
        for note in one.notes:
            yield f"{PurePosixPath(one.path).name}: {_brief(note)}"


def _brief(note: str) -> str:
    """A note whose list is too long for a screen: its first names, and how many more (JSON has all)."""
    names = note.split(", ")
    rest = len(names) - NAMES_SHOWN
    return note if rest < 2 else f"{', '.join(names[:NAMES_SHOWN])} and {rest} more"

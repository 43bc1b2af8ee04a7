"""Sample logs for the tests: one analysis a case, the facts that it must state, its golden JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import chdir
from functools import cache
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import UNSET

from analyzer.cli.reports import report_context
from analyzer.grammar import data_path
from analyzer.pipeline import Analysis, open_analysis
from analyzer.replay.plan import Plan
from analyzer.replay.planning import build_plan
from analyzer.report import json as json_report
from analyzer.report.request import ReportContext
from analyzer.schema import Fault, Result, SourceFrame, Suspect
from analyzer.scoreboard import Case, Expected, accused_suspect, is_false_accusation, is_op, load_cases


@cache
def cases() -> tuple[Case, ...]:
    """Every shipped sample."""
    return tuple(load_cases(data_path("sample_logs")))


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """What is made of a case while its inputs are open: the result, what reports need beside it, the plan."""

    result: Result
    context: ReportContext
    plan: Plan


@cache
def opened(name: str) -> Opened:
    """One case, analysed once for all tests, inside its folder so that every path in it is relative."""
    case = next(case for case in cases() if case.name == name)
    with chdir(case.folder), open_analysis(list(case.inputs), case.analysis_options(Path())) as found:
        return Opened(result=found.result, context=_lasting_context(found), plan=build_plan(found))


def _lasting_context(found: Analysis) -> ReportContext:
    """The context of the command line; its raw lines are read now, because the inputs are closed then."""
    lines = [found.excerpt(source, 1, one.total_lines) for source, one in enumerate(found.loaded)]

    def excerpt(source: int, first: int, last: int) -> Sequence[str]:
        return lines[source][max(first, 1) - 1 : last]

    return msgspec.structs.replace(report_context(found), excerpt=excerpt)


def analysis(name: str) -> Result:
    """The result of one case."""
    return opened(name).result


def golden(result: Result) -> bytes:
    """The JSON report without what changes with a release."""
    return json_report.render(msgspec.structs.replace(result, tool_version="*"))


def differences(expected: Expected, result: Result) -> Iterator[str]:
    """Each stated fact that the result does not bear out, as ``fact: expected ..., got ...``."""
    yield from _root_differences(expected, result)
    yield from _suspect_differences(expected, result)
    yield from _window_differences(expected, result)
    yield from _conclusion_differences(expected, result)
    yield from _mode_differences(expected, result)
    yield from _role_differences(expected, result)


def root_fault(result: Result) -> Fault | None:
    """The first fault with the role ``root``."""
    return next((fault for fault in result.faults if fault.role == "root"), None)


def _differ(fact: str, expected: object, got: object) -> Iterator[str]:
    if expected is not UNSET and expected != got:
        yield f"{fact}: expected {expected!r}, got {got!r}"


def _root_differences(expected: Expected, result: Result) -> Iterator[str]:
    fault, stated = root_fault(result), expected.root
    if stated is None or fault is None:
        yield from _differ("root", stated, fault)
        return
    yield from _differ("root.kind", stated.kind, fault.kind)
    yield from _differ("root.code", stated.code, fault.code)
    yield from _differ("root.line", stated.line, fault.line)
    yield from _differ("root.trust", stated.trust, fault.trust)


def _suspect_differences(expected: Expected, result: Result) -> Iterator[str]:
    first = min(result.suspects, key=lambda suspect: suspect.rank, default=None)
    if expected.top is not None:
        if first is None or not is_op(first, expected.top):
            yield f"top: expected {expected.top}, got {first.op if first else None}"
        elif accused_suspect(result) != first:
            yield f"conclusion.suspect: expected rank {first.rank}, got {result.conclusion.suspect}"
    if expected.top_source is not UNSET:
        place = (expected.top_source.file, expected.top_source.line)
        yield from _source_differences(place, first)
    if is_false_accusation(expected, result):
        yield f"accuse: {expected.accuse}, but rank {result.conclusion.suspect} is accused"


def _source_differences(place: tuple[str, int], first: Suspect | None) -> Iterator[str]:
    places = [(_base_name(frame), frame.line) for frame in first.source] if first else []
    if place not in places:
        yield f"top_source: expected {place}, got {places}"


def _base_name(frame: SourceFrame) -> str:
    return PurePosixPath(frame.file).name


def _window_differences(expected: Expected, result: Result) -> Iterator[str]:
    stated, window = expected.window, result.window
    if stated is None or window is None:
        yield from _differ("window", stated, window)
    elif stated is not UNSET:
        yield from _differ("window.first_op.id", stated.first, window.first_op.id)
        yield from _differ("window.last_op.id", stated.last, window.last_op.id)
        yield from _differ("window.size", stated.size, window.size)
        yield from _differ("window.begin.line", stated.after_line, window.begin.line)


def _conclusion_differences(expected: Expected, result: Result) -> Iterator[str]:
    conclusion = result.conclusion
    if conclusion.confidence not in expected.confidence_in:
        yield f"confidence: expected one of {expected.confidence_in}, got {conclusion.confidence!r}"
    messenger = conclusion.messenger.name if conclusion.messenger else None
    yield from _differ("messenger", expected.messenger, messenger)
    yield from _differ("cause_class", expected.cause_class, conclusion.cause_class)
    cleared = {one.op.id for one in result.cleared.ops}
    for op_id in expected.cleared_ids:
        if op_id not in cleared:
            yield f"cleared_ids: {op_id} is not among {sorted(i for i in cleared if i is not None)}"
    commands = [step.command for step in result.next_steps]
    for text in expected.next_step_contains:
        if not any(text in command for command in commands):
            yield f"next_step_contains: no command has {text!r}: {commands}"


def _role_differences(expected: Expected, result: Result) -> Iterator[str]:
    roles = {fault.line: fault.role for fault in result.faults}
    for line, role in expected.roles.items():
        yield from _differ(f"roles[{line}]", role, roles.get(line))


def _mode_differences(expected: Expected, result: Result) -> Iterator[str]:
    yield from _differ("devices", expected.devices, result.timeline.devices)
    stated = expected.modes
    if stated is UNSET:
        return
    modes = result.modes
    yield from _differ("modes.device_sync_mode", stated.device_sync_mode, modes.device_sync_mode)
    yield from _differ("modes.launch_blocking", stated.launch_blocking, modes.launch_blocking)
    yield from _differ("modes.coredump", stated.coredump, modes.coredump)
    if stated.nan_check is not UNSET:
        checked = [(one.checked, one.of) for one in modes.nan_check]
        yield from _differ("modes.nan_check", [(stated.nan_check.checked, stated.nan_check.of)], checked)

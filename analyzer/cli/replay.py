"""``--replay``: execute the suspicious window again and put what was found into the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import typer

from analyzer.replay.program import replay_program
from analyzer.replay.report import ReplayReport
from analyzer.replay.state import LastAnalysis, command_for, load_last, replay_folder, save_last
from analyzer.schema import Result


def remember(logs: Sequence[str], result: Result) -> None:
    """Keep the analysis for a later ``trace-analyze --replay`` in this directory; a failure harms nothing."""
    save_last(Path.cwd(), logs, result)


def last_result() -> Result:
    """The last analysis made in this directory.

    Raises:
        ReplaySetupError: There is none.
    """
    return load_last(Path.cwd()).result


def replayed(
    logs: Sequence[str], result: Result, program: Sequence[str], deadline_s: float, *, quiet: bool
) -> Result:
    """The result with the replay in it.

    Args:
        logs: Inputs of this call; empty = the last analysis of this directory goes on.
        result: The analysis.
        program: What stood after ``--``; empty = the program replayed here before.
        deadline_s: Of each attempt.
        quiet: No progress on standard error.

    Raises:
        ReplaySetupError: There is neither a program nor other material.
    """
    from analyzer.replay.attempts import ReplayOptions

    here = Path.cwd()
    last = LastAnalysis(cwd=str(here), inputs=list(logs), result=result) if logs else load_last(here)
    command = command_for(last, program)
    if not logs and not quiet:
        names = ", ".join(last.inputs)
        typer.echo(f"trace-analyze: replaying the window of {names}, analysed here last", err=True)
    save_last(here, last.inputs, result, command)
    with _progress(quiet=quiet) as tell:
        options = ReplayOptions(folder=replay_folder(here), deadline_s=deadline_s, progress=tell)
        report = replay_program(result, command, options)
    return with_replay(result, report)


def with_replay(result: Result, report: ReplayReport) -> Result:
    """Put a replay into a result: only a confirmed op of the same failure raises the confidence."""
    conclusion = result.conclusion
    if report.verdict == "confirmed" and (other := _other_failure(result, report)):
        told = f"{report.statement}; {other}"
        report = msgspec.structs.replace(report, verdict="confirmed_other_op", statement=told)
    if report.verdict == "confirmed" and (conclusion.suspect is None or conclusion.confidence != "proven"):
        statement = f"Confirmed by replay: {report.statement}. {conclusion.statement}"
        conclusion = msgspec.structs.replace(conclusion, confidence="confirmed", statement=statement)
    return msgspec.structs.replace(result, conclusion=conclusion, replay=report)


def _other_failure(result: Result, report: ReplayReport) -> str | None:
    """Why the replay failed in another way than the log, or null. Any failing program confirms nothing."""
    root = next((fault for fault in result.faults if fault.role == "root"), None)
    failed = next((one for one in reversed(report.attempts) if one.outcome == "failed"), None)
    error = (failed.error if failed else None) or "an error of another kind"
    if root is None:
        return f"but the log has no fault: this failure ({error}) is another one"
    same_kind = report.comparison.same_kind if report.comparison else None
    same_name = root.text.split(":")[0] == error.split(":")[0]
    if same_kind is False or (root.kind == "unknown" and not same_name):
        return f"but that is another failure than the log's: {error}"
    return None


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """Attempts as they begin; a spinner where a person watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replay")
        yield lambda stage: bar.update(task, description=stage)

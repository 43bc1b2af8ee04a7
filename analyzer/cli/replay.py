"""``--replay``: execute the suspicious window again and put what was found into the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import typer

from analyzer.cli.messages import terminal
from analyzer.cli.op_replay import plan_for, reopened, run_plan
from analyzer.cli.replay_options import ReplayWanted
from analyzer.pipeline import Analysis, Options
from analyzer.replay.program import replay_program
from analyzer.replay.report import ReplayReport
from analyzer.replay.run_folder import run_folder
from analyzer.replay.state import load_last, replay_folder, save_last
from analyzer.schema import Result


def replayed(analysis: Analysis, logs: Sequence[str], wanted: ReplayWanted) -> Result:
    """The result of this call's inputs with the replay in it.

    Args:
        analysis: Open.
        logs: The inputs as given.
        wanted: A program, or the options of an op replay.

    Raises:
        ReplaySetupError: There is neither a program nor anything in the log that can be executed.
    """
    result = analysis.result
    save_last(Path.cwd(), logs, result, wanted.program or None, analysis.options)
    if wanted.program:
        return with_replay(result, _run_program(result, wanted.program, wanted))
    plan = plan_for(analysis, wanted)
    with _progress(quiet=wanted.quiet) as tell:
        return with_replay(result, run_plan(result, plan, wanted, tell), own=wanted.plan is None)


def replayed_last(wanted: ReplayWanted) -> Result:
    """The last analysis of this directory with a replay in it.

    Of the program given, or replayed here before; else of the ops in its inputs.

    Raises:
        ReplaySetupError: No analysis was made here, its inputs are gone, or nothing in them can be executed.
    """
    here = Path.cwd()
    last = load_last(here)
    command = () if wanted.of_ops() else wanted.program or last.command
    if not wanted.quiet:
        names = ", ".join(last.inputs)
        typer.echo(f"trace-analyze: replaying the window of {names}, analysed here last", err=True)
    if command:
        options = Options(ir=tuple(map(Path, last.ir)), window=last.window, process=last.process)
        save_last(here, last.inputs, last.result, command, options)
        return with_replay(last.result, _run_program(last.result, command, wanted))
    result, plan = reopened(last, wanted)
    with _progress(quiet=wanted.quiet) as tell:
        return with_replay(result, run_plan(result, plan, wanted, tell), own=wanted.plan is None)


def _run_program(result: Result, command: Sequence[str], wanted: ReplayWanted) -> ReplayReport:
    from analyzer.replay.attempts import ReplayOptions

    with _progress(quiet=wanted.quiet) as tell, run_folder(replay_folder(Path.cwd())) as folder:
        options = ReplayOptions(
            folder=folder,
            deadline_s=wanted.deadline_s,
            memory_limit_bytes=wanted.memory_limit_bytes,
            progress=tell,
        )
        return replay_program(result, command, options)


def with_replay(result: Result, report: ReplayReport, *, own: bool = True) -> Result:
    """Put a replay into a result: only a confirmed op of the same failure raises the confidence.

    Args:
        result: The analysis.
        report: What the replay found.
        own: What ran is what the log tells; a plan that was given may say anything, and confirms itself only.
    """
    conclusion = result.conclusion
    of_program = report.kind == "program"  # single ops are judged with what is known of each
    if of_program and report.verdict == "confirmed" and (other := _other_failure(result, report)):
        told = f"{report.statement}; {other}"
        report = msgspec.structs.replace(report, verdict="confirmed_other_op", statement=told)
    is_proven = conclusion.suspect is not None and conclusion.confidence == "proven"
    if own and report.verdict == "confirmed" and not is_proven:
        statement = f"A replay shows it: {report.statement}. {conclusion.statement}"
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
    with Progress(*shown, console=Console(file=terminal()), transient=True) as bar:
        task = bar.add_task("replay")
        yield lambda stage: bar.update(task, description=stage)

"""``--replay``: execute the suspicious window again and put what was found into the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

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
from analyzer.verdict.confidence import with_replay


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

"""``trace-analyze LOG ...``: the analysis and everything that can be made of it."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from analyzer.cli.interrupt import EXIT_INTERRUPTED
from analyzer.cli.output import columns, progress, size_of, use_color, write_stdout
from analyzer.cli.replay_options import (
    CustomExtensions,
    Device,
    MemoryLimit,
    PlanFile,
    Python,
    ReplayInputs,
    ReplayWanted,
    ReproFile,
    SavePlan,
    UserOps,
    each_once,
    parse_memory_limit,
    spare_inputs,
)
from analyzer.cli.ring import RING
from analyzer.errors import ReplaySetupError, StrictLossError, UsageError
from analyzer.pipeline import Analysis, Options, open_analysis
from analyzer.report.request import ReportKind
from analyzer.schema import Result
from analyzer.scratch import keep_told

EXIT_FOUND = 1  # --check: a root fault was found


class Format(StrEnum):
    """What goes to standard output."""

    text = "text"
    json = "json"


class Reports(msgspec.Struct, frozen=True, kw_only=True):
    """Files to write."""

    paths: tuple[Path, ...]
    kind: ReportKind | None
    limit_bytes: int | None
    redact: bool
    timeline_csv: Path | None
    timeline_parquet: Path | None

    def any(self) -> bool:
        """Whether any file is to be written."""
        return bool(self.paths or self.timeline_csv or self.timeline_parquet)


def analyze_command(  # noqa: PLR0917 (typer reads positional parameters)
    context: typer.Context,
    logs: Annotated[
        list[str] | None, typer.Argument(help="Log files; - for standard input.", show_default=False)
    ] = None,
    ir: Annotated[
        list[Path] | None, typer.Option(help="File or folder of MAX ir-output-dir: adds shapes.")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(help="Kineto trace or nsys SQLite export: adds device times.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.text,
    top: Annotated[int, typer.Option(min=1, help="Suspects to show.")] = 3,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Print ops by time and steps with outliers instead.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print which rule decided what, with lines, instead.")
    ] = False,
    timeline_csv: Annotated[Path | None, typer.Option(help="Write the op timeline as CSV.")] = None,
    timeline_parquet: Annotated[Path | None, typer.Option(help="Write the op timeline as Parquet.")] = None,
    report: Annotated[
        list[Path] | None, typer.Option(help="Write a report: .md .html .json .sarif .xml .perfetto.json")
    ] = None,
    report_format: Annotated[ReportKind | None, typer.Option(help="Kind of the reports.")] = None,
    report_limit: Annotated[int | None, typer.Option(min=1, help="Largest report in bytes.")] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Replace names, hosts, paths, texts and keys in all output.",
        ),
    ] = False,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Execute the window again: the program after --, else its ops."),
    ] = False,
    deadline: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="Longest attempt of a replay.")
    ] = 600.0,
    replay_inputs: ReplayInputs = None,
    plan: PlanFile = None,
    save_plan: SavePlan = None,
    user_ops: UserOps = None,
    custom_extensions: CustomExtensions = None,
    repro: ReproFile = None,
    python: Python = None,
    device: Device = None,
    memory_limit: MemoryLimit = None,
    window: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Lines to take as the window.")
    ] = None,
    process: Annotated[str | None, typer.Option(help="Take the ops of this process only.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 if a root fault was found.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 4 if a gated text was not read.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing on standard error.")] = False,
    width: Annotated[int | None, typer.Option(min=40, help="Columns; default: the terminal's.")] = None,
) -> None:
    """Say what failed, where it was reported, who is suspected and what to run next."""
    wanted = Reports(
        paths=tuple(report or ()),
        kind=report_format,
        limit_bytes=report_limit,
        redact=redact,
        timeline_csv=timeline_csv,
        timeline_parquet=timeline_parquet,
    )
    again = ReplayWanted(
        program=tuple(context.obj or ()),
        deadline_s=deadline,
        quiet=quiet,
        inputs=tuple(replay_inputs or ()),
        plan=plan,
        save_plan=save_plan,
        user_ops=user_ops,
        custom_extensions=tuple(custom_extensions or ()),
        repro=repro,
        python=_absolute(python) if python else sys.executable,
        device=device,
        memory_limit_bytes=parse_memory_limit(memory_limit),
    )
    again.check(replay=replay)
    if timeline and explain:
        raise UsageError("--timeline and --explain: one view at a time")
    if redact and explain:
        raise UsageError("--explain shows the log's own words: it cannot be redacted")
    read = [*(logs or ()), *(ir or ()), *again.inputs]
    read += [one for one in (profile, again.user_ops) if one is not None]
    spare_inputs([*read, *([plan] if plan else [])], [*wanted.paths, timeline_csv, timeline_parquet, repro])
    spare_inputs(read, [save_plan])
    each_once([*wanted.paths, timeline_csv, timeline_parquet, repro, save_plan])
    again.spare_files()
    if not logs:
        if timeline or explain or wanted.any():
            raise UsageError("give the log for --timeline, --explain and files: they are made of its lines")
        result = _redacted(_replay_of_last(again, replay=replay), redact=redact)
        write_stdout(_text(result, output, top, width))
        keep_told()
        return _exit(result, check=check, strict=strict)
    with progress(size_of(logs), quiet=quiet) as tell:
        options = Options(
            ir=tuple(ir or ()),
            profile=profile,
            window=parse_window(window),
            process=process,
            progress=tell,
            formats=(RING,),
        )
        with open_analysis(logs, options) as opened:
            analysis = _after(opened, logs, again, replay=replay)
            result = _shown(analysis, redact=redact)
            if analysis.joined is not None and not analysis.joined.matches and not quiet:
                typer.echo(f"trace-analyze: {analysis.joined.text}", err=True)
            text = _view(
                analysis, result, output, top, width, timeline=timeline, explain=explain, redact=redact
            )
            _write_files(analysis, wanted)
    write_stdout(text)
    keep_told()
    return _exit(result, check=check, strict=strict)


def _absolute(program: str) -> str:
    """Attempts run in a folder of their own; a name without a folder is looked for in PATH."""
    return str(Path(program).absolute()) if "/" in program else program


def _replay_of_last(again: ReplayWanted, *, replay: bool) -> Result:
    if not replay:
        raise UsageError("give a log file, or - for standard input")
    from analyzer.cli.replay import replayed_last

    return replayed_last(again)


def _after(analysis: Analysis, logs: list[str], again: ReplayWanted, *, replay: bool) -> Analysis:
    """Replay the window if asked to; else keep the analysis for a later ``--replay``."""
    if not replay:
        from analyzer.replay.state import save_last  # without the rest of a replay: it takes time to import

        save_last(Path.cwd(), logs, analysis.result, options=analysis.options)
        return analysis
    from analyzer.cli.replay import replayed

    result = replayed(analysis, logs, again)
    return msgspec.structs.replace(analysis, result=result)


def parse_window(value: str | None) -> tuple[int, int] | None:
    """``FIRST:LAST`` as line numbers."""
    if value is None:
        return None
    first, colon, last = value.partition(":")
    numbers = value.isascii() and first.isdigit() and last.isdigit()
    if not (colon and numbers and 0 < int(first) <= int(last)):
        raise UsageError(f"--window {value!r}: give the first and last line of the window as FIRST:LAST")
    return int(first), int(last)


def _view(
    analysis: Analysis,
    result: Result,
    output: Format,
    top: int,
    width: int | None,
    *,
    timeline: bool,
    explain: bool,
    redact: bool,
) -> bytes:
    """What goes to standard output: the result, or the view that was asked for instead."""
    if explain:
        from analyzer.report.explain import render_explanation

        shown = render_explanation(analysis.incident, analysis.result)
        return shown.encode("utf-8", errors="replace")
    if timeline:
        return _timeline_text(analysis, result, width, redact=redact)
    return _text(result, output, top, width)


def _text(result: Result, output: Format, top: int, width: int | None) -> bytes:
    if output is Format.json:
        from analyzer.report.json import render as render_json

        return render_json(result)
    from analyzer.report.terminal import render as render_text

    shown = render_text(result, width=columns(width), color=use_color(), top=top)
    return shown.encode("utf-8", errors="replace")


def _redacted(result: Result, *, redact: bool) -> Result:
    """A result without its inputs, as it is printed."""
    if not redact:
        return result
    from analyzer.report.redact import redacted
    from analyzer.report.request import ReportContext

    return redacted(result, ReportContext(redact=True))[0]


def _shown(analysis: Analysis, *, redact: bool) -> Result:
    """The result as it is printed."""
    if not redact:
        return analysis.result
    from analyzer.cli.reports import shown_result

    return shown_result(analysis)


def _timeline_text(analysis: Analysis, result: Result, width: int | None, *, redact: bool) -> bytes:
    from analyzer.cli.reports import timeline_ops
    from analyzer.report.timeline_table import render_timeline
    from analyzer.timeline.clock import doubts
    from analyzer.timeline.timing import op_totals, step_times

    ops = timeline_ops(analysis, redact=redact)
    if ops.is_empty():
        raise UsageError("--timeline: the inputs hold no op records")
    shown = render_timeline(
        op_totals(ops),
        step_times(ops),
        result.timeline.timing_basis,
        width=columns(width),
        color=use_color(),
        notes=[*([analysis.joined.text] if analysis.joined is not None else []), *doubts(ops)],
    )
    if result.replay is not None and result.replay.ops:
        from analyzer.report.replayed import render_replayed

        shown += render_replayed(result.replay, width=columns(width), color=use_color())
    return shown.encode("utf-8", errors="replace")


def _write_files(analysis: Analysis, wanted: Reports) -> None:
    if wanted.paths:
        from analyzer.cli.reports import write_reports

        write_reports(analysis, wanted.paths, wanted.kind, wanted.limit_bytes, redact=wanted.redact)
        keep_told()
    if wanted.timeline_csv or wanted.timeline_parquet:
        from analyzer.cli.reports import write_timeline

        write_timeline(analysis, wanted.timeline_csv, wanted.timeline_parquet, redact=wanted.redact)


def _exit(result: Result, *, check: bool, strict: bool) -> None:
    if strict and result.losses:
        first = result.losses[0]
        count = len(result.losses) + result.losses_omitted
        path = result.inputs[first.input].path
        raise StrictLossError(f"{path}:{first.line}: {first.why} ({count} such texts): {first.text}")
    if result.replay is not None and result.replay.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if result.replay is not None and result.replay.verdict == "setup_failed":
        raise typer.Exit(ReplaySetupError.exit_code)
    if check and any(fault.role == "root" for fault in result.faults):
        raise typer.Exit(EXIT_FOUND)

"""The command line: the only place that prints, writes files and exits."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from analyzer import __version__
from analyzer.errors import AnalyzerError, OutputError, StrictLossError, UsageError
from analyzer.schema import Result

EXIT_FOUND = 1  # --check: a root fault was found
EXIT_PIPE = 141  # the reader of our output went away (as the shell reports SIGPIPE)
PROGRESS_AFTER_BYTES = 50_000_000  # below this the analysis is over before a bar could help

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)


class Format(StrEnum):
    """What goes to standard output."""

    text = "text"
    json = "json"


def _window(value: str | None) -> tuple[int, int] | None:
    """``FIRST:LAST`` as line numbers."""
    if value is None:
        return None
    first, colon, last = value.partition(":")
    numbers = value.isascii() and first.isdigit() and last.isdigit()
    if not (colon and numbers and 0 < int(first) <= int(last)):
        raise UsageError(f"--window {value!r}: give the first and last line of the window as FIRST:LAST")
    return int(first), int(last)


@app.command("analyze", no_args_is_help=True)
def analyze_command(  # noqa: PLR0917 (typer reads positional parameters)
    logs: Annotated[list[str], typer.Argument(help="Log files; - for standard input.", show_default=False)],
    ir: Annotated[
        list[Path] | None, typer.Option(help="File or folder of MAX ir-output-dir: adds shapes.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.text,
    top: Annotated[int, typer.Option(min=1, help="Suspects to show.")] = 3,
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
    from analyzer.pipeline import Options, analyze

    with _progress(logs, quiet=quiet) as tell:
        result = analyze(
            logs, Options(ir=tuple(ir or ()), window=_window(window), process=process, progress=tell)
        )
    _print(_render(result, output, top=top, width=width))
    _exit(result, check=check, strict=strict)


def _render(result: Result, output: Format, *, top: int, width: int | None) -> bytes:
    if output is Format.json:
        from analyzer.report.json import render as render_json

        return render_json(result)
    from analyzer.report.terminal import render as render_text

    columns = width or shutil.get_terminal_size((100, 24)).columns
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return render_text(result, width=columns, color=color, top=top).encode("utf-8", errors="replace")


def _print(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter flushes again
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(EXIT_PIPE) from error
        raise OutputError(f"standard output: cannot be written: {error.strerror}") from error


def _exit(result: Result, *, check: bool, strict: bool) -> None:
    if strict and result.losses:
        first = result.losses[0]
        count = len(result.losses) + result.losses_omitted
        path = result.inputs[first.input].path
        raise StrictLossError(f"{path}:{first.line}: {first.why} ({count} such texts): {first.text}")
    if check and any(fault.role == "root" for fault in result.faults):
        raise typer.Exit(EXIT_FOUND)


@contextlib.contextmanager
def _progress(logs: list[str], *, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """A progress display on standard error: only on a terminal and only for long work."""
    size = sum(Path(log).stat().st_size for log in logs if Path(log).is_file())
    if quiet or not sys.stderr.isatty() or size < PROGRESS_AFTER_BYTES:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading")
        yield lambda stage: bar.update(task, description=stage)


@app.command("schema")
def schema_command() -> None:
    """Print the JSON schema of ``--format json``."""
    import json

    from analyzer.schema import json_schema

    _print((json.dumps(json_schema(), indent=2) + "\n").encode())


@app.command("version")
def version_command() -> None:
    """Print the version."""
    _print(f"trace-analyze {__version__}\n".encode())


_COMMANDS = frozenset({"analyze", "schema", "version"})


def _arguments(arguments: list[str]) -> list[str]:
    """``trace-analyze serve.log`` means ``trace-analyze analyze serve.log``."""
    if arguments and arguments[0] == "--version":
        return ["version"]
    if not arguments or arguments[0] in _COMMANDS or arguments[0] == "--help":
        return arguments
    return ["analyze", *arguments]


def main() -> None:
    """Entry point: errors become a message and their exit code."""
    try:
        app(_arguments(sys.argv[1:]))
    except AnalyzerError as error:
        typer.echo(f"trace-analyze: {error}", err=True)
        sys.exit(error.exit_code)
    except Exception:  # noqa: BLE001 (the last border: a crash must not look like --check)
        traceback.print_exc()
        typer.echo("trace-analyze: this is a bug of ours; please report it with the text above", err=True)
        sys.exit(AnalyzerError.exit_code)

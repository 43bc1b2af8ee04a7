"""Standard output, and the progress display on standard error."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

from analyzer.cli.messages import terminal
from analyzer.errors import OutputError

EXIT_PIPE = 141  # the reader of our output went away (as the shell reports SIGPIPE)
PROGRESS_AFTER_BYTES = 50_000_000  # below this the analysis is over before a bar could help
DEFAULT_COLUMNS = 100


def write_stdout(data: bytes) -> None:
    """Write to standard output.

    Raises:
        OutputError: It cannot be written (a full disk).
        typer.Exit: Its reader went away.
    """
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter flushes again
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(EXIT_PIPE) from error
        raise OutputError(f"standard output: cannot be written: {error.strerror}") from error


def columns(width: int | None) -> int:
    """The width asked for, else the terminal's."""
    return width or shutil.get_terminal_size((DEFAULT_COLUMNS, 24)).columns


def use_color() -> bool:
    """Colours only for a person at a terminal who did not switch them off (no-color.org)."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


@contextlib.contextmanager
def progress(size_bytes: int, *, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """A progress display on standard error: only on a terminal and only for long work."""
    if quiet or not sys.stderr.isatty() or size_bytes < PROGRESS_AFTER_BYTES:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*shown, console=Console(file=terminal()), transient=True) as bar:
        task = bar.add_task("reading")
        yield lambda stage: bar.update(task, description=stage)


def size_of(paths: list[str]) -> int:
    """Bytes of the inputs that are files."""
    return sum(Path(path).stat().st_size for path in paths if os.path.isfile(path))  # noqa: PTH113 (never raises)

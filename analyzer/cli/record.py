"""``trace-analyze record -- COMMAND``: run a server so that its next crash can be analysed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_MIB = 1 << 20


class TargetName(StrEnum):
    """Which framework the switches are for."""

    max = "max"
    torch = "torch"
    aoti = "aoti"
    vllm = "vllm"
    sglang = "sglang"
    rocm = "rocm"
    any = "any"


class LevelName(StrEnum):
    """How much is recorded, from nearly nothing to everything."""

    light = "light"
    ops = "ops"
    sync = "sync"
    sanitize = "sanitize"


def record_command(  # noqa: PLR0917 (typer reads positional parameters)
    context: typer.Context,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Log to write; .zst at its end compresses.")
    ] = None,
    target: Annotated[TargetName, typer.Option("--for", help="Whose switches to set.")] = TargetName.any,
    level: Annotated[
        LevelName,
        typer.Option(
            help="light: stamps and core dump; ops: op log too; sync: blocking launches; sanitize: sanitizer."
        ),
    ] = LevelName.ops,
    max_size: Annotated[
        int | None, typer.Option(min=1, metavar="MIB", help="Begin a new file at this size.")
    ] = None,
    keep: Annotated[int, typer.Option(min=0, help="Older files that stay.")] = 5,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print the switches that are set.")] = False,
) -> None:
    """Run the command after -- with stamped lines and the right switches; exit as it does."""
    from analyzer.record.wrapper import RecordOptions, record

    options = RecordOptions(
        output=output,
        target=target.value,
        level=level.value,
        max_bytes=max_size * _MIB if max_size else None,
        keep=keep,
        quiet=quiet,
    )
    raise typer.Exit(record(context.obj or [], options))

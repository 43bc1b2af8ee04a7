"""Commands, their arguments, and how errors become exit codes."""

from __future__ import annotations

import sys
import traceback

import typer

from analyzer import __version__
from analyzer.cli.analyze import EXIT_INTERRUPTED, analyze_command
from analyzer.cli.output import write_stdout
from analyzer.cli.record import record_command
from analyzer.errors import AnalyzerError

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command("analyze", no_args_is_help=True)(analyze_command)
app.command("record")(record_command)


@app.command("schema")
def schema_command() -> None:
    """Print the JSON schema of ``--format json``."""
    import json

    from analyzer.schema import json_schema

    write_stdout((json.dumps(json_schema(), indent=2) + "\n").encode())


@app.command("version")
def version_command() -> None:
    """Print the version."""
    write_stdout(f"trace-analyze {__version__}\n".encode())


_COMMANDS = frozenset({"analyze", "record", "schema", "version"})


def split_arguments(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and the user's program after the first ``--``.

    ``trace-analyze serve.log`` means ``trace-analyze analyze serve.log``.
    """
    at = arguments.index("--") if "--" in arguments else len(arguments)
    own, program = arguments[:at], arguments[at + 1 :]
    if own == ["--version"]:
        return ["version"], program
    if own and own[0] not in _COMMANDS and own[0] != "--help":
        own = ["analyze", *own]
    return own, program


def main() -> None:
    """Entry point: errors become a message and their exit code."""
    own, program = split_arguments(sys.argv[1:])
    try:
        app(own, obj=program)
    except AnalyzerError as error:
        typer.echo(f"trace-analyze: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("trace-analyze: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except Exception:  # noqa: BLE001 (the last border: a crash must not look like --check)
        traceback.print_exc()
        typer.echo("trace-analyze: this is a bug of ours; please report it with the text above", err=True)
        sys.exit(AnalyzerError.exit_code)

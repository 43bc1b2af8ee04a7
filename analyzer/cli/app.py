"""Commands, their arguments, and how errors become exit codes."""

from __future__ import annotations

import errno
import sys
import traceback
from typing import NoReturn

import typer

from analyzer import __version__
from analyzer.cli.analyze import analyze_command
from analyzer.cli.endings import end_in_order
from analyzer.cli.interrupt import EXIT_INTERRUPTED, MESSAGE, is_interrupt, leave_at_once
from analyzer.cli.messages import make_messages_harmless, message
from analyzer.cli.output import write_stdout
from analyzer.cli.record import record_command
from analyzer.errors import AnalyzerError, OutputError

_OTHERS = """\b
Other commands (each with --help):
  trace-analyze record [OPTIONS] -- COMMAND   Run COMMAND so that its next crash can be analysed.
  trace-analyze schema                        Print the JSON schema of --format json.
  trace-analyze version                       Print the version."""


def _typer() -> typer.Typer:
    return typer.Typer(
        add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
    )


# The analysis is an app of its own, so that its usage and its help need no word for it.
analysis = _typer()
analysis.command(no_args_is_help=True, options_metavar="[OPTIONS]", epilog=_OTHERS)(analyze_command)
app = _typer()
app.command("record", options_metavar="[OPTIONS] -- COMMAND [ARGUMENTS]...")(record_command)


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


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_COMMANDS = frozenset({"record", "schema", "version"})


def split_arguments(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and the user's program after the first ``--``."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    own, program = arguments[:at], arguments[at + 1 :]
    return ["version"] if own == ["--version"] else own, program


def chosen_app(own: list[str]) -> tuple[typer.Typer, list[str]]:
    """The app for these arguments, with its own ones: the analysis, unless another command is named.

    ``trace-analyze analyze serve.log`` means ``trace-analyze serve.log``.
    """
    if own and own[0] in _COMMANDS:
        return app, own
    return analysis, own[1:] if own[:1] == ["analyze"] else own


def main() -> None:
    """Entry point: errors become a message and their exit code."""
    make_messages_harmless()
    own, program = split_arguments(sys.argv[1:])
    try:
        command, arguments = chosen_app(own)
        command(arguments, obj=program)
    except AnalyzerError as error:
        typer.echo(message(error), err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, SystemExit) as error:
        if not is_interrupt(error):  # Typer makes an exit of it
            raise
        end_in_order()
        leave_at_once()
        typer.echo(MESSAGE, err=True)
        sys.exit(EXIT_INTERRUPTED)
    except OSError as error:
        if error.errno not in NO_ROOM:
            _our_bug()
        where = error.filename or "a file of ours"
        told = f"{where}: {error.strerror}; TMPDIR and XDG_STATE_HOME name other places"
        typer.echo(message(told), err=True)
        sys.exit(OutputError.exit_code)
    except Exception:  # noqa: BLE001 (the last border: a crash must not look like --check)
        _our_bug()


def _our_bug() -> NoReturn:
    """For use where an exception is handled."""
    traceback.print_exc()
    typer.echo("trace-analyze: this is a bug of ours; please report it with the text above", err=True)
    sys.exit(AnalyzerError.exit_code)

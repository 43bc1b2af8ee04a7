"""Ctrl-C at any moment: exit code 130 and one line, while modules are imported too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from analyzer.cli.interrupt import is_interrupt
from analyzer.grammar import data_path

LOG = data_path("sample_logs") / "max_ops" / "paged_async" / "input.log.gz"
# As the console script does it; the byte says that main() is about to run.
PROGRAM = (
    "import os, sys; from analyzer.cli import main; os.write(int(sys.argv.pop(1)), b'x'); sys.exit(main())"
)
NOT_SOONER_S = 0.005  # the handler is in place within a fraction of it


def interrupted(after_s: float) -> tuple[int, bytes]:
    """Exit code and standard error of an analysis that gets Ctrl-C so long after its start."""
    reading, writing = os.pipe()
    command = [sys.executable, "-c", PROGRAM, str(writing), str(LOG)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(writing,)
    ) as child:
        os.close(writing)
        assert os.read(reading, 1) == b"x"
        os.close(reading)
        time.sleep(after_s)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate()
    return child.returncode, errors


@pytest.mark.parametrize("after_s", [NOT_SOONER_S, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3])
def test_interrupt_gives_130_and_one_line(after_s: float) -> None:
    """No traceback of an import; a machine that was quicker than the signal is done."""
    code, errors = interrupted(after_s)
    assert (code, errors) in {(130, b"trace-analyze: interrupted\n"), (0, b"")}
    assert code == 130 or after_s > NOT_SOONER_S


def test_interrupt_is_seen_behind_what_a_library_made_of_it() -> None:
    """Typer makes an exit of it."""
    made = SystemExit(130)
    made.__context__ = ValueError()
    assert not is_interrupt(made)
    made.__context__.__cause__ = KeyboardInterrupt()
    assert is_interrupt(made)
    assert not is_interrupt(None)

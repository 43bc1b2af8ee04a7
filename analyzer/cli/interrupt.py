"""Ctrl-C before and after the work: one line and exit code 130, no traceback of an import.

Imports no more than it needs: until it is in place an interrupt is Python's own affair.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130
MESSAGE = "trace-analyze: interrupted"


def leave_at_once() -> None:
    """From now on Ctrl-C ends the process: nothing is left to be removed, or nothing was made yet.

    Where it is ignored (a command in the background of a shell) it stays so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def at_once() -> Iterator[None]:
    """Ctrl-C ends the process inside: imports swallow the exception, or turn it into another one."""
    before = signal.getsignal(signal.SIGINT)
    leave_at_once()
    yield
    signal.signal(signal.SIGINT, before)


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is Ctrl-C, or what a library made of it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _leave(_signal: int, _frame: object) -> None:
    os.write(2, f"{MESSAGE}\n".encode())
    os._exit(EXIT_INTERRUPTED)

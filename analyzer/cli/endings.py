"""How a command ends when it is asked to: nothing is left behind, and the asker sees his own signal."""

from __future__ import annotations

import atexit
import os
import signal
from types import FrameType

from analyzer.scratch import ENDING_SIGNALS, remove_all

_ASKS = (signal.SIGTERM, signal.SIGHUP)  # Ctrl-C raises: what a replay has found by then is printed


def guard_signals() -> None:
    """From now on SIGTERM and SIGHUP end this process in order.

    A signal that is ignored stays so (``nohup``). Parts that have more to do than to remove their files (a
    replay with a child, a recording) put handlers of their own in place for as long.
    """
    atexit.register(end_in_order)
    for number in _ASKS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def end_in_order() -> None:
    """Remove what was not removed, undisturbed. Afterwards a signal ends the process at once."""
    caught = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in caught:
        signal.signal(number, signal.SIG_IGN)
    remove_all()
    for number in caught:
        signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    """No exception: it could be swallowed, or meet a clean-up half done."""
    end_in_order()
    os.kill(os.getpid(), number)

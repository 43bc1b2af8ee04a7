"""The command line: the only place that prints, writes files and exits."""

import atexit
import gc

from analyzer.cli.interrupt import at_once, leave_at_once

# Most of what a short run makes lives to its end: looking for garbage in it is a tenth of the start, and at
# the end the process gives all of it back anyway.
gc.set_threshold(100_000, 50, 50)
atexit.register(gc.freeze)

__all__ = ["main"]


def main() -> None:
    """Entry point. What takes time to import is imported here, where Ctrl-C is looked after."""
    with at_once():
        from analyzer.cli.app import main as run
        from analyzer.cli.endings import end_in_order, guard_signals

        guard_signals()
    try:
        run()
    finally:
        end_in_order()
        leave_at_once()

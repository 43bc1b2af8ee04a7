"""The command line: the only place that prints, writes files and exits."""

import atexit
import gc

# Most of what a short run makes lives to its end: looking for garbage in it is a tenth of the start, and at
# the end the process gives all of it back anyway.
gc.set_threshold(100_000, 50, 50)
atexit.register(gc.freeze)

from analyzer.cli.app import main  # noqa: E402  (the setting has to come before the imports that it is for)

__all__ = ["main"]

"""Standard error: whatever is said there (errors, hints, tracebacks, usage) cannot move a cursor."""

from __future__ import annotations

import io
import sys
from typing import TextIO

from analyzer.report.plain import plain


class HarmlessStream(io.TextIOBase):
    """A text stream whose texts may hold names of files and texts of logs: control characters become escapes.

    Every message passes here, also those of libraries, which repeat an option or a path as it was given. What
    draws on a terminal on purpose (a progress display) takes ``raw``.
    """

    def __init__(self, raw: TextIO) -> None:
        """Write to ``raw``, which stays open."""
        self.raw = raw

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Any text is taken; ``raw`` replaces what it cannot write."""
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """As standard error has it."""
        return "backslashreplace"

    def write(self, text: str) -> int:
        """Lines stay lines; all else that is no print is escaped."""
        if not isinstance(text, str):  # libraries try whether a stream takes bytes
            raise TypeError("texts only")
        shown = "\n".join(map(plain, text.split("\n")))
        self.raw.write(shown)
        return len(text)

    def writable(self) -> bool:
        """Yes."""
        return True

    def flush(self) -> None:
        """Flush ``raw``."""
        self.raw.flush()

    def isatty(self) -> bool:
        """Whether ``raw`` is a terminal."""
        return self.raw.isatty()

    def fileno(self) -> int:
        """That of ``raw``."""
        return self.raw.fileno()


def make_messages_harmless() -> None:
    """From now on nothing else reaches standard error."""
    if not isinstance(sys.stderr, HarmlessStream):
        sys.stderr = HarmlessStream(sys.stderr)


def terminal() -> TextIO:
    """Standard error for what draws on a terminal."""
    return sys.stderr.raw if isinstance(sys.stderr, HarmlessStream) else sys.stderr


def message(error: object) -> str:
    """An error as one message: its further lines are indented, so that none looks like another message."""
    return "trace-analyze: " + "\n  ".join(str(error).split("\n"))

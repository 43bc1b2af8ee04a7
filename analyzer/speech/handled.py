"""Errors that the program handled: it says what it does instead, and later shows work that depends on it."""

from __future__ import annotations

import re

_CALM = frozenset({"WARNING", "INFO", "DEBUG"})
_CALM_WORD = re.compile(r"^(?:WARN(?:ING)?|INFO|DEBUG)\b")  # a logger that writes nothing but the level
_INSTEAD = re.compile(
    r"(?i)\b(?:retry(?:ing)?|retries|re-trying|try(?:ing)? again|skip(?:ping|ped)?|fall(?:ing|s)? ?back"
    r"|fell back"
    r"|reduc(?:e|ing) (?:the )?(?:batch|chunk))\b"
)
# Words with which programs of all kinds tell that what they were asked for is done.
DONE = ("finished in ", "initialized successfully", "completed in ", "done in ", "completed successfully")


def is_calm_line(text: str, level: str | None) -> bool:
    """Whether a logger told it no louder than a warning: who logs an error so has caught it."""
    return level in _CALM or (level is None and _CALM_WORD.match(text) is not None)


def says_instead(text: str) -> bool:
    """Whether the program says that it tries something else."""
    return _INSTEAD.search(text) is not None

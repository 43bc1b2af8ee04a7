"""Error texts with something behind them: a rank, a second writer, broken bytes (formats.md 7.2)."""

from __future__ import annotations

from functools import cache

from analyzer.tables.codes import CODES, ErrorCode, by_text

_MIN_CHARS = 8


@cache
def _texts() -> tuple[str, ...]:
    """All known texts, the longest first."""
    return tuple(sorted((row.text.lower() for row in CODES if len(row.text) >= _MIN_CHARS), key=len)[::-1])


def by_text_start(text: str) -> tuple[ErrorCode, str] | None:
    """The row of the longest known text that ``text`` begins with, and what follows it; null = none."""
    plain = text.strip()
    if row := by_text(plain):
        return row, ""
    small = plain.lower()
    known = next((known for known in _texts() if small.startswith(known)), None)
    row = by_text(known) if known else None
    return (row, plain[len(known) :]) if row and known else None

"""Text of a log made harmless for every view."""

from __future__ import annotations

import unicodedata

# Characters that move the cursor or reorder text: control, format (bidi), surrogate, line separators.
HOSTILE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def plain(text: str) -> str:
    """Text of a log made harmless: what moves the cursor or reorders text becomes a visible escape."""
    if text.isprintable():  # the usual text, in one look
        return text
    return "".join(
        _escape(char) if unicodedata.category(char) in HOSTILE_CATEGORIES else char for char in text
    )


def _escape(char: str) -> str:
    code = ord(char)
    if char in SHORT_ESCAPES:
        return SHORT_ESCAPES[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

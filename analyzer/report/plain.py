"""Text of a log made harmless for every view."""

from __future__ import annotations

import re
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


# ``HOSTILE_CATEGORIES`` without what JSON escapes by itself and the surrogates, which it refuses.
_HOSTILE_IN_JSON = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001-\U000e007f]"
)


def plain_json(document: str) -> str:
    """JSON whose texts say the same with such characters as escapes: a terminal may show it."""
    return _HOSTILE_IN_JSON.sub(_json_escape, document)


def _json_escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _escape(char: str) -> str:
    code = ord(char)
    if char in SHORT_ESCAPES:
        return SHORT_ESCAPES[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

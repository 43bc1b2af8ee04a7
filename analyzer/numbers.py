"""The one reader of numbers in log text: ASCII digits, a largest length, finite.

Python's own ``int`` and ``float`` take what no program prints into a log (``1_0`` is a number, a superscript
two a digit), refuse more than 4,300 digits with an exception, and give what neither JSON nor a column of 64
bits holds. Text of a stranger goes through this module only; a test looks for other calls.
"""

from __future__ import annotations

import re
from math import isfinite

from analyzer.grammar import GrammarError

MAX_INTEGER = 2**64 - 1  # what a JSON number of the result holds; C++ prints -1 as the largest of them
MIN_INTEGER = -(2**63)
MAX_RANK = 2**31 - 1  # of a process, and its number in a launcher: the columns of frames have 32 bits
MAX_EXTENT = 2**63 - 1  # of a tensor's dimension
MAX_SIZE_BYTES = 2**60  # no memory is larger; sums of sizes stay within 64 bits
_MOST_CHARACTERS = 400  # a double printed in full has 309 digits before its point
_DECIMAL = re.compile(r"[-+]?[0-9]{1,20}")
_HEXADECIMAL = re.compile(r"[-+]?(?:0[xX])?[0-9a-fA-F]{1,16}")
_REAL = re.compile(r"[-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]{1,9})?")
_WORD = re.compile(r"[-+]?(?:nan|inf)")
_SHOWN = 60  # characters of a refused text in its error


class NumberError(GrammarError):
    """A text that stands where a number should, and is none that fits."""

    def __init__(self, text: str) -> None:
        """Say which text, cut short: it can be a megabyte of digits."""
        super().__init__("number", text[:_SHOWN], 0, ("a number that fits 64 bits",))


def integer(text: str | None, most: int = MAX_INTEGER) -> int | None:
    """A decimal number with or without sign.

    Args:
        text: ASCII digits; null is passed on.
        most: The largest that makes sense: beyond it, or below minus it, the text is no number.

    Returns:
        Null where the text is anything else: an unknown number, not a failure.
    """
    if text is None or not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if max(-most, MIN_INTEGER) <= number <= most else None


def natural(text: str | None, most: int = MAX_INTEGER) -> int | None:
    """``integer`` without a sign; null = the text is anything else."""
    return integer(text, most) if is_digits(text) else None


def is_digits(text: str | None) -> bool:
    """Whether a text is made of ASCII digits, as many as it has; an empty one is not."""
    return text is not None and text.isascii() and text.isdigit()


def need_integer(text: str | None, most: int = MAX_INTEGER) -> int:
    """``integer`` of a text that makes no sense without its number.

    Raises:
        NumberError: It is none; within a witness that is a ``Loss`` of the line.
    """
    number = integer(text, most)
    if number is None:
        raise NumberError(text or "")
    return number


def hexadecimal(text: str | None) -> int | None:
    """A number of at most 16 hexadecimal digits, with or without ``0x``; null = it is none."""
    if text is None or not _HEXADECIMAL.fullmatch(text):
        return None
    return int(text, 16)


def real(text: str | None) -> float | None:
    """A finite decimal fraction; null = it is none, or larger than a double."""
    if text is None or len(text) > _MOST_CHARACTERS or not _REAL.fullmatch(text):
        return None
    number = float(text)
    return number if isfinite(number) else None


def need_real(text: str | None) -> float:
    """``real`` of a text that makes no sense without its number.

    Raises:
        NumberError: It is none; within a witness that is a ``Loss`` of the line.
    """
    number = real(text)
    if number is None:
        raise NumberError(text or "")
    return number


def printed_value(text: str) -> float:
    """A value that a program printed: finite, or the words ``nan`` and ``inf``.

    Raises:
        NumberError: It is none of these.
    """
    return float(text) if _WORD.fullmatch(text) else need_real(text)


def need_bytes(text: str, factor: int) -> int:
    """A size: number times the factor of its unit, rounded.

    Raises:
        NumberError: It is no number, negative, or more than ``MAX_SIZE_BYTES``.
    """
    size = need_real(text) * factor
    if not 0 <= size <= MAX_SIZE_BYTES:
        raise NumberError(text)
    return round(size)

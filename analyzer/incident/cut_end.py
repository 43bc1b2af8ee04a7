"""Where an input ends without a line end: whether its last line is whole, and which name ends there.

A program that is killed leaves half a line; who copies a log from a screen leaves a whole one without its
end. What reads as whole is not cut; a name at the end is none, for its rest may be missing.
"""

from __future__ import annotations

import re

from analyzer.ingest.reader import LineReader
from analyzer.tables.codes import CODES

# A full stop behind words: not that of a path (`torch.`), a number (`2.`) or an abbreviation in a list.
_SENTENCE = re.compile(r"(?:^| )[(\"'`]*[A-Za-z][A-Za-z'()`-]*[a-z)`][.!?][)\]\"'`]*$")
_WORDS = re.compile(r"\S +\S++ +\S")
# The last field of the kernel's own sentence on a process that it killed.
_LAST_FIELD = re.compile(r" oom_score_adj:-?[0-9]+$")
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
_QUOTES = "\"`'"
_LINES = 200  # of a report
_NAME_END = re.compile(r"(?<![\w.$:])[\w.$:]++$")


def is_cut_off(reader: LineReader, line: int) -> bool:
    """Whether the input ends inside ``line``, and what is there of it does not read as whole."""
    return reader.is_cut(line) and not _is_whole_line(reader, line)


def ends_in_name(reader: LineReader, name: str, first: int) -> bool:
    """Whether a name stands nowhere in the lines from ``first`` on but at the very end of the input."""
    last = reader.total_lines
    if not reader.is_cut(last):
        return False
    lines = reader.lines(max(first, last - _LINES), last)
    word = _NAME_END.search(lines[-1].text)
    if word is None or word.group() != name.rsplit(maxsplit=1)[-1]:
        return False
    whole = re.compile(rf"(?<![\w.]){re.escape(word.group())}(?![\w.])")
    return not any(whole.search(line.text) for line in lines if line.number < last)


def _is_whole_line(reader: LineReader, line: int) -> bool:
    raw = reader.raw(line, line)[-1].strip()
    if raw.startswith("{") and raw.endswith("}"):  # a record with its last bracket
        return True
    return reads_whole(reader.lines(line, line)[-1].text)


def reads_whole(text: str) -> bool:
    """Whether a text ends as a sentence, in a bracket or quote that closes, or in an error's own words."""
    text = text.rstrip()
    if _LAST_FIELD.search(text) or _ends_in_known_text(text):
        return True
    if _WORDS.search(text) is None:
        return False
    return _SENTENCE.search(text) is not None or _is_closed(text)


def _is_closed(text: str) -> bool:
    last = text[-1:]
    if not last or any(text.count(opens) != text.count(closes) for opens, closes in _PAIRS):
        return False
    if last in _QUOTES:
        return text.count(last) % 2 == 0
    return any(last == closes for _, closes in _PAIRS)


def _ends_in_known_text(text: str) -> bool:
    """The words of the driver to their end, unless they are the beginning of other ones as well."""
    small = text.lower()
    return any(small.endswith(f" {one}") for one in _WHOLE_TEXTS)


_TEXTS = tuple(row.text.lower() for row in CODES)
_WHOLE_TEXTS = tuple(one for one in _TEXTS if not any(other.startswith(f"{one} ") for other in _TEXTS))

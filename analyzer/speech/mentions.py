"""Lines that mention an error in passing: no program tells there that something failed.

A logger that writes INFO or below reports a failure only where its words say so, or where it hands on what
another program printed: then the error begins the message, or stands behind a label (``stderr: ``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from analyzer.speech.explained import is_explained

_QUIET = frozenset({"INFO", "DEBUG", "TRACE"})
_LOUD = frozenset({"ERROR", "CRITICAL", "FATAL"})
_RAISED = re.compile(r"(?:(?<![\w.])[\w.]++(?:(?<=Error)|(?<=Exception)): ?|what\(\): *)$")
_TALK = re.compile(
    r"(?i)\b(?:if|in case|whenever|you|should|would|might|may|can|could)\b(?!(?: ?not|'t)\b)"
    r"|\b(?:e\.g\.|such as|for example|hint|tip|note|faq)(?![\w-])"
    r"|\bknown (?:\w+ )?(?:errors?|issues?|bugs?|signatures?)\b"
)
_FAILED = re.compile(
    r"(?i)\b(?:fail(?:ed|ure|s)?|died|dead|dies|crash(?:ed|es)?|abort(?:ed|s)?|fatal|panic\w*|exceptions?|caught"
    r"|raised|threw|thrown|returned|hit|got|encountered|detected|received|killed|lost|terminat\w+|exit(?:ed|s)?"
    r"|unhandled|because|due to|after)\b"
)
# Right before the error, whatever the sentence says besides.
_FAILS_AT = re.compile(r"(?i)\b(?:failed|died|crashed|aborted|raised|threw|hit|got)\b[^.;:,]{0,24}:?$")
_LABEL = re.compile(r"(?:[:\]|>=]|(?<= )-)$")
_WORD = re.compile(r"[A-Za-z]{2}")
_LINE_COMMENT = re.compile(r"\s*+//[/!]?\s")  # of C++ or Rust
_COMMENT = frozenset({"#", "//"})
_ABOUT = re.compile(r"(?i)\b(?:about|for|such as)$")

# A string inside a statement of C++, Python or Rust: a traceback shows such lines, and so does a pasted file.
_CODE = re.compile(
    r"""\b(?:\w{0,40}printf|puts|print|eprintln!|TORCH_(?=\w*(?:CHECK|WARN))\w++|GGML_\w++|assert|raise|throw|LOG\w*+"""
    r"""|[Ll]og(?:ger)?\.\w++|runtime_error)\s*+[\w.:]{0,100}\([^"'\n]{0,1000}["']"""
    r"""|std::c(?:err|out) <<|^\s*#\s*define \w|\b(?:const char|static)\b[^=]{0,250}= ?["{]"""
)
_LISTED = re.compile(r"^\s*(?:[-*+]|[0-9]+\.) `$")  # Markdown: an item that begins with a text as code
# Help text: an option or a variable, then its description in a column of its own.
_OPTION = re.compile(r"^\s+(?:--?[A-Za-z]|[A-Z][A-Z0-9_]+=)\S*(?: \S+)*\s{2,}\S")
# A page explains what the words of the driver stand for.
_MEANS = re.compile(
    r"\b(?:triggered|encountered|address|failure|instruction|argument|memory)[\"'`]* +(?:(?:usually|often) )?"
    r"(?:means|indicates)\b"
)
_TEST = re.compile(r"\.py::\w++(?:\[[^\]\n]{0,1000}\])? (?:PASSED|XFAIL|XPASS|SKIPPED|RERUN)\b")  # of pytest
_REQUEST = re.compile(r'"(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH) /[^"]*$')  # inside an access line
_TOLD_CHARS = 20  # of the text of a fault: what was found out about it may follow


def is_code(text: str) -> bool:
    """Whether a line is a statement of a program whose string holds the words of an error."""
    return _CODE.search(text) is not None


def mentioned(gated: pl.DataFrame, faults: Mapping[int, str]) -> set[int]:
    """Lines of faults that only mention the error, and all lines that mention it alike.

    Args:
        gated: ``LINES`` of the source.
        faults: Text of each fault by its line; one can stand for many lines that differ in numbers.
    """
    starts = {line: text.split("\n", 1)[0][:_TOLD_CHARS] for line, text in faults.items()}
    rows = gated.filter(pl.col("line").is_in(list(starts))).select("line", "text", "level")
    talk = {
        starts[line] for line, text, level in rows.iter_rows() if _only_mentions(text, starts[line], level)
    }
    lines = set[int]()
    for start in talk:
        alike = gated.filter(pl.col("text").str.contains(start, literal=True))
        texts = alike.select("text", "level").unique(maintain_order=True)
        told = [text for text, level in texts.iter_rows() if _only_mentions(text, start, level)]
        lines.update(alike.filter(pl.col("text").is_in(told))["line"])
    return lines


def _only_mentions(line: str, error: str, level: str | None) -> bool:
    """Whether ``error`` stands in a line of one record that only mentions it."""
    at = line.find(error)
    if at < 0 or "\n" in line:
        return False
    means = level not in _LOUD and _MEANS.search(line[at:]) is not None
    return means or (at > 0 and is_mention(line[:at], level))


def is_mention(before: str, level: str | None) -> bool:
    """Whether a line only mentions the error in it.

    Args:
        before: The line up to the error's own words; the name of an exception may end it.
        level: As its logger wrote it; null = it writes none.
    """
    if level not in _LOUD and is_explained(before):
        return True
    if _TEST.search(before) or _REQUEST.search(before):
        return True
    if _LISTED.search(before) or (level is None and _OPTION.search(before)):
        return True
    raised = _RAISED.search(before)
    said = (before[: raised.start()] if raised else before).rstrip(" \t\"'`(")
    if _WORD.search(said) is None:
        return said.strip() in _COMMENT
    if _LINE_COMMENT.match(said):
        return True
    if level not in _QUIET:
        return level is None and bool(_ABOUT.search(said)) and _FAILED.search(said) is None
    if _FAILS_AT.search(said):
        return False
    if _TALK.search(said):
        return True
    return _LABEL.search(said) is None and _FAILED.search(said) is None

"""Lines that mention an error in passing: no program tells there that something failed.

A logger that writes INFO or below reports a failure only where its words say so, or where it hands on what
another program printed: then the error begins the message, or stands behind a label (``stderr: ``).
"""

from __future__ import annotations

import re

from analyzer.parse.explained import is_explained

_QUIET = frozenset({"INFO", "DEBUG", "TRACE"})
_LOUD = frozenset({"ERROR", "CRITICAL", "FATAL"})
_RAISED = re.compile(r"(?:[\w.]+(?:Error|Exception): ?|what\(\): *)$")
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
_LABEL = re.compile(r"(?:[:\]|>=]|(?<= )-)$")
_WORD = re.compile(r"[A-Za-z]{2}")
_COMMENT = frozenset({"#", "//"})
_ABOUT = re.compile(r"(?i)\b(?:about|for|such as)$")


def is_mention(before: str, level: str | None) -> bool:
    """Whether a line only mentions the error in it.

    Args:
        before: The line up to the error's own words; the name of an exception may end it.
        level: As its logger wrote it; null = it writes none.
    """
    if level not in _LOUD and is_explained(before):
        return True
    raised = _RAISED.search(before)
    said = (before[: raised.start()] if raised else before).rstrip(" \t\"'`(")
    if _WORD.search(said) is None:
        return said.strip() in _COMMENT
    if level not in _QUIET:
        return level is None and bool(_ABOUT.search(said)) and _FAILED.search(said) is None
    if _TALK.search(said):
        return True
    return _LABEL.search(said) is None and _FAILED.search(said) is None

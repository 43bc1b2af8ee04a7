"""Texts that talk about an error: commit messages, help texts, source code. Nobody reports one there."""

from __future__ import annotations

import re

# The last word before the error, where it is told what to do about it or what is meant.
_VERBS = re.compile(
    r"(?i)\b(?:about|like|if|when|workaround|see|seeing|avoids?|catch(?:es)?|debug(?:ging)?|documents?|expects?"
    r"|explains?|fix(?:e[sd]|ing)?|handl(?:es?|ing)|ignores?|mentions?|prevents?|reproduces?|resolves?"
    r"|simulates?|tests?)$"
)
_RAISED = re.compile(r"(?<![\w.])[\w.]++(?:(?<=Error)|(?<=Exception)): ?$")
_CODE = re.compile(r"\b(?:raise|throw)\s+[\w.:]+\(\s*(?:\w+\()?[rbf]?[\"']$")
_QUOTES = "\"'`"
_FAILS = re.compile(
    r"(?i)\b(?:fail|died|dead|crash|abort|fatal|panic|exception|caught|raised|hit\b|got\b|encountered)"
)
_TRIED = re.compile(r"(?i)\b(?:failed to|unable to|could not|cannot|can't)\s+\w+$")
# What goes on after the error: somebody explains (``... was encountered, then restart``).
_SENTENCE = re.compile(r"[\"'`\])]*+[,;]? ++[A-Za-z]")


def is_explained(before: str) -> bool:
    """Whether the text before an error says that it is only talked about.

    Args:
        before: The line up to the error's own words; the name of an exception may end it.
    """
    if _CODE.search(before):
        return True
    raised = _RAISED.search(before)
    text = (before[: raised.start()] if raised else before).rstrip()
    if raised and text.endswith("`"):  # Markdown
        return True
    said = text.rstrip(_QUOTES).rstrip()
    return bool(_VERBS.search(said)) and _TRIED.search(said) is None


def goes_on(before: str, after: str) -> bool:
    """Whether a sentence goes on behind an error inside it, and nothing before says that something failed."""
    return bool(_SENTENCE.match(after)) and not _FAILS.search(before)

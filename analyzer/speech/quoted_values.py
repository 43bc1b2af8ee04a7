"""Values of requests and settings that servers log in quotes: not text of the process itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

_LEVELS = ("INFO", "DEBUG", "TRACE")  # an error is logged as one, even if it quotes the prompt
_BARE = r"(?i)\b(?:\w*prompt|question|answer|query):\s+[^\s'\"\[{(]"  # what a person wrote: the rest of it
_NAMES = (
    r"\w*[Pp]rompts?|messages|inputs?|args|obj|outputs?|out|text|input_text|[Gg]enerated[ _](?:text|output)"
    r"|completions?|\w*[Rr]esponses?|[Aa]nswers?|[Rr]eply|[Qq]uestions?|[Qq]uery|content|choices|delta|body|documents?"
    r"|documentation|docs|description|comments?|title|subject"
)
_KEY = rf"""\b(?:{_NAMES})["']?(?:=|:\s?)(?:["'\[{{]|\w+\()|\b(?:Namespace|environ)\("""
# How a record of a request begins where the logger writes no level: SGLang's, and examples that print.
_RECORD = r"^(?:\[\w+\] )?(?:(?:Receive|Finish|Abort)(?:d|ed)?\b[A-Za-z ]*: |\w*[Pp]rompts?: |environ\()"
# Bodies of requests and answers, whoever logs them: chat messages, completions, lines of a stream.
_CHAT = (
    r"""\\*["']role\\*["']\s*:\s*\\*["'](?:user|assistant|system|developer|tool)\b"""
    r"""|\\*["'](?:choices|messages|prompt)\\*["']\s*:\s*(?:\[|\\*["'])"""
)
_SAID = re.compile(
    r"""(["'](?:content|text|prompt|reasoning_content|arguments)["']\s*:\s*)"""
    r"""(?:"(?:[^"\\]|\\.)*(?:"|$)|'(?:[^'\\]|\\.)*(?:'|$))"""
)
# The same as a string inside a string; to the end of the line where it is not closed.
_SAID_INSIDE = re.compile(
    r"""(\\["'](?:content|text|prompt|reasoning_content|arguments)\\["']\s*:\s*)\\".*?(?:[^\\]\\"(?=\s*+[,}\]])|(?=\n)|$)"""
)
_OPENS = re.compile(_KEY)
_OPENS_BARE = re.compile(_BARE)
_FAILED_BEFORE = re.compile(
    r"(?i)\b(?:fail(?:ed|ure)?|error|exception|crashed|died)\b"
)  # "failed for prompt: ..."
_UNTOLD = re.compile(_RECORD)
_CLOSED = re.compile(r"""(?<![\w\\])(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""")
_QUOTE = re.compile(r"""(?<!\w)["']""")
# A string after a word is an apostrophe; without an end (cut off) it goes on to the end of the record.
_STRING = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*(?:'|\\?$)|"(?:[^"\\]|\\.)*(?:"|\\?$))""", re.DOTALL)


def quoted_only(gated: pl.DataFrame, literals: Sequence[str]) -> list[int]:
    """Lines whose literals all stand inside the quoted value of a logged request or setting.

    Args:
        gated: ``LINES``; a record with line ends inside gives several rows of one line.
        literals: All gates.
    """
    text = pl.col("text")
    untold = pl.col("level").is_null() & text.str.contains(_RECORD)
    told = pl.col("level").is_in(_LEVELS).fill_null(value=False) | untold
    opened = gated.filter((told & text.str.contains(f"{_KEY}|{_BARE}")) | text.str.contains(_CHAT))[
        "line"
    ].unique()
    if opened.is_empty():
        return []
    rows = gated.filter(pl.col("line").is_in(opened.implode()))
    records = rows.group_by("line", maintain_order=True).agg(
        text.filter(told).str.join("\n"),
        text.filter(~told).str.join("\n").alias("glued"),  # a progress bar, or the record of another writer
    )
    kept = [
        (line, f"{without_quoted(own)}\n{without_said(glued)}") for line, own, glued in records.iter_rows()
    ]
    frame = pl.DataFrame(kept, schema={"line": pl.UInt32, "rest": pl.String}, orient="row")
    return frame.filter(~pl.col("rest").str.contains_any(list(literals)))["line"].to_list()


def opens_string(text: str, level: str | None) -> str | None:
    """The quote of a string that the record of a request opens and does not close in this line; null = none.

    Args:
        text: One line.
        level: As its logger wrote it; null = it writes none.
    """
    if level not in _LEVELS and (level is not None or _UNTOLD.search(text) is None):
        return None
    found = _OPENS.search(text)
    if found is None:
        return None
    left = _CLOSED.sub("", text[found.end() - 1 :])
    opened = _QUOTE.search(left)
    return opened.group() if opened else None


def without_quoted(text: str) -> str:
    """The text without the strings behind the first key of a request (``prompt: '...'``)."""
    bare = _OPENS_BARE.search(text)
    if bare is not None and _FAILED_BEFORE.search(text[: bare.start()]) is None:
        text = text[: bare.end() - 1]
    found = _OPENS.search(text)
    if found is None:
        return text
    at = found.end() - 1  # the quote itself may be the last character of the key
    return text[:at] + _STRING.sub("''", text[at:])


def without_said(text: str) -> str:
    """The text without what users and models said in the body of a request or an answer."""
    if re.search(_CHAT, text) is None:
        return text
    return _SAID_INSIDE.sub(r"\1''", _SAID.sub(r"\1''", text))

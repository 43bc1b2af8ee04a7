"""Rows of the terminal report and the short words in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

from rich.text import Text

from analyzer.report.plain import plain
from analyzer.schema import OpRef, Result, Value


class Row(Value):
    """One paragraph: ``hang`` stands before its first line, the rest is indented to match.

    ``fit`` says what to do with text wider than the terminal: wrap it, cut it, or leave it whole
    (commands, so that they can be copied).
    """

    text: Text
    hang: str = ""
    fit: Literal["wrap", "cut", "whole"] = "wrap"


def say(*parts: str | tuple[str, str]) -> Text:
    """One text of plain and ``(text, style)`` parts, each made harmless."""
    text = Text()
    for part in parts:
        words, style = (part, "") if isinstance(part, str) else part
        text.append(plain(words), style=style or None)
    return text


def heading(words: str) -> Row:
    """The head of a section."""
    return Row(text=Text(words, style="bold"))


def joined(parts: Iterable[str | None]) -> str:
    """What is known of several facts, with dots between."""
    return " · ".join(part for part in parts if part)


def count_of(number: int, noun: str) -> str:
    """``1 op``, ``2 ops``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def named(op: OpRef) -> str:
    """``name (id 302)``."""
    return op.name if op.id is None else f"{op.name} (id {op.id})"


def place_of(result: Result, source: int, line: int | None) -> str | None:
    """``line 12``, or ``serve.log:12`` where several inputs were read; null without a line."""
    if line is None:
        return None
    if len(result.inputs) < 2 or source >= len(result.inputs):
        return f"line {line}"
    return f"{PurePosixPath(result.inputs[source].path).name}:{line}"


def percent(share: float) -> str:
    """A share as a person reads it."""
    return f"{share:.0%}" if share >= 0.01 or share == 0 else "<1%"

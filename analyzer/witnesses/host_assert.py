"""Asserts of host code in C and C++: the line that the C library prints before it aborts (formats.md 3.21).

It says what the death that follows only tells the signal of. Asserts of device code are ``device_assert``.
"""

from __future__ import annotations

import re

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading
from analyzer.speech.mentions import is_code
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import Form, Seen, build_fault, place_of, read_forms

NAME = "host_assert"
GATE = ": Assertion "
_FORMS = (
    Form(
        rule="assertion",
        begins=r"(?:[^\s:`]+: )?[^\s:`][^:`\n]*:[0-9]+: (?:[^`\n]*: )?Assertion `[^\n]+['`] failed",
    ),
)
_COMMENT = re.compile(r"^\s*(?:#|\*|//|/\*)(?:\s|$)|(?:^|\s)(?://|/\*)\s")


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001  (single lines)
    """Read the gated lines of one source: one record for each process and text."""
    losses = Losses(NAME)
    shown = [text for text in frame["text"].unique() if _is_source(text)]
    told = frame.filter(~pl.col("text").is_in(shown))
    seen = read_forms(told, NAME, _FORMS, losses)
    reading = Reading(records=[_record(one) for one in seen], losses=losses.all())
    reading.parsed = sorted({line for one in seen for line in one.lines})
    lost = {loss.line for loss in reading.losses}
    reading.not_mine = sorted(set(frame["line"]) - set(reading.parsed) - lost)
    return reading


def _is_source(text: str) -> bool:
    """Whether a file is shown that holds the words: a comment, or a statement that prints them."""
    before = text.partition(GATE)[0]
    return _COMMENT.search(before) is not None or is_code(before)


def _record(seen: Seen) -> FaultRecord:
    fault = build_fault(seen, NAME, "host_abort", "host", name="SIGABRT")
    place = place_of(seen.get("PATH"), seen.get("INT"), seen.get("FUNCTION") or "")
    return msgspec.structs.replace(fault, location=place)


WITNESS = Witness(name=NAME, gates=(GATE,), read=read, grammar="host_assert.lark")

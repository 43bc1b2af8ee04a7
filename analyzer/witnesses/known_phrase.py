"""Errors of GPU runtimes and libraries in the words of their headers, whoever prints them.

It is read after all who know their printer better: what they understood is not looked at again. The line has
to report the error (``speech.errors``); where it names a source line, that is the place of the check. No word
of it is taken for a kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, FaultSite, Reading
from analyzer.numbers import need_integer
from analyzer.schema import SourceFrame
from analyzer.speech.errors import is_calm, reports
from analyzer.tables.phrases import Phrase, find_phrase, gates
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.calls import site_of_call
from analyzer.witnesses.forms import FETCHED, LONG_NUMBER, with_traceback
from analyzer.witnesses.host_error import gates_of_others

NAME = "known_phrase"
_TEXTS = 2_000  # of a source; a person reads none of the rest
_SUFFIXES = "cuh?|cpp|cc|cxx|c|hpp|hxx|h|inl|hip|py|pyx|rs|go|mojo|jl|cl|mm?|java|swift"
_PART = r"[^\s()\[\]{}'\"`,;=<>|]"
_SOURCE = rf"(?<!{_PART}){_PART}+\.(?:{_SUFFIXES})"
_PLACE = re.compile(rf"({_SOURCE})(?:\:|\(| line |, line |:L|@| at line )([0-9]{{1,6}})\b")
_CALL = re.compile(r"\b((?:cuda|hip|cu|nccl|cublas|cudnn)[A-Z]\w+) ?(?:\(|failed|returned)")
_SHOWN_CHARS = 400


def read_last(frame: pl.DataFrame, fetch: Fetch, others: Sequence[Reading]) -> Reading:
    """Read the lines of one source that nobody else has understood."""
    known = {line for other in others for line in (*other.parsed, *other.continuation)}
    left = frame.filter(~pl.col("line").is_in(list(known)))
    reading = Reading()
    for row in _folded(left).iter_rows(named=True):
        phrase = find_phrase(row["text"])
        if phrase is None or not _reports(row["text"], row["level"], phrase):
            continue
        fault = _fault(row, phrase)
        if len(reading.records) < FETCHED:
            fault, used = with_traceback(fault, fetch)
            reading.continuation.extend(used - known)
        reading.records.append(fault)
        reading.parsed.extend(row["lines"])
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.not_mine = _left_over(frame, reading)
    return reading


def _folded(frame: pl.DataFrame) -> pl.DataFrame:
    """One row a text of a process, numbers aside, by first line; a text with several lines gives several."""
    rows = frame.select("source", "line", "process", "rank", "pid", "time_ns", "level", "text")
    rows = rows.with_columns(pl.col("text").str.split("\n")).explode("text")
    shape = pl.col("text").str.replace_all("0x[0-9a-fA-F]+", "0x").str.replace_all(LONG_NUMBER, "${1}#")
    return (
        rows.with_columns(shape.alias("shape"))
        .group_by("process", "shape", "level", maintain_order=True)
        .agg(
            pl.col("source", "rank", "pid", "time_ns", "text").first(),
            pl.col("line").unique(maintain_order=True).alias("lines"),
        )
        .head(_TEXTS)
    )


def _reports(text: str, level: str | None, phrase: Phrase) -> bool:
    after = text[phrase.at + len(phrase.words) :]
    return reports(text[: phrase.at], level, after) and not is_calm(text, level)


def _fault(row: dict[str, object], phrase: Phrase) -> FaultRecord:
    lines = msgspec.convert(row["lines"], list[int])
    text = str(row["text"]).strip()
    return FaultRecord(
        source=msgspec.convert(row["source"], int),
        process=str(row["process"]),
        line=lines[0],
        last_line=lines[-1],
        block_first=lines[0],
        text=text[:_SHOWN_CHARS],
        witness=NAME,
        kind=phrase.kind,
        site=_site(text, phrase),
        code=phrase.code,
        name=phrase.name,
        vendor=phrase.vendor,
        rank=msgspec.convert(row["rank"], int | None),
        time_ns=msgspec.convert(row["time_ns"], int | None),
        pid=msgspec.convert(row["pid"], int | None),
        count=len(lines),
        location=_place(text),
    )


def _site(text: str, phrase: Phrase) -> FaultSite:
    """A refused call is raised where it is made; all other calls met what an earlier launch did."""
    if phrase.site != "sync":
        return phrase.site
    call = _CALL.search(text)
    return site_of_call(call[1]) if call else "sync"


def _place(text: str) -> SourceFrame | None:
    found = _PLACE.search(text)
    return SourceFrame(file=found[1], line=need_integer(found[2]), function="") if found else None


def _left_over(frame: pl.DataFrame, reading: Reading) -> list[int]:
    """Lines that hold a phrase and no gate of another witness: they are nobody's, and lost to nobody."""
    taken = {*reading.parsed, *reading.continuation}
    foreign = frame.filter(~pl.col("text").str.contains_any(list(gates_of_others(NAME))))
    return [line for line in foreign["line"].unique(maintain_order=True) if line not in taken]


WITNESS = Witness(name=NAME, gates=gates(), read_last=read_last)

"""What the device had finished when the op log of a recording was written (``record.ops.marks``)."""

from __future__ import annotations

from typing import Any

import polars as pl

from analyzer.model import DeviceMark, Reading
from analyzer.numbers import integer
from analyzer.witness import Fetch, Witness

NAME = "recorded_marks"
MARK = "[RECORD] DONE "
_FORM = (
    r"^\[RECORD\] DONE stream=(?P<number>[0-9]{1,9}) device=(?P<device>[a-z]+:[0-9]{1,4})"
    r"(?: id=(?P<id>[0-9]{1,18}) op=(?P<op>\S{1,500}))?(?: left=(?P<left>[0-9,-]{1,20000}))?"
    r"(?: graph=(?P<graph>\S{1,40}))?$"
)
_COLUMNS = ("source", "line", "process", "number", "device", "id", "left", "graph")
_NONE = r"^\[RECORD\] DONE none=.+$"
_MOST = 100_000  # ids that one line can stand for


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001 (a mark stands alone)
    """Read the marks of one source. A line that only quotes one is somebody else's."""
    fields = (
        frame.select("source", "line", "process", "text")
        .with_columns(pl.col("text").str.extract_groups(_FORM).alias("told"))
        .unnest("told")
    )
    rows = fields.filter(pl.col("number").is_not_null())
    nothing = frame.filter(pl.col("text").str.contains(_NONE))
    taken = [*rows["line"], *nothing["line"]]
    return Reading(
        records=[_mark(row) for row in rows.select(_COLUMNS).iter_rows()],
        parsed=taken,
        not_mine=frame.filter(~pl.col("line").is_in(taken))["line"].to_list(),
    )


def _mark(row: tuple[Any, ...]) -> DeviceMark:
    source, line, process, number, device, done, left, graph = row
    return DeviceMark(
        source=source,
        process=process,
        line=line,
        stream=integer(number) or 0,
        device=device,
        done=integer(done),
        left=_ids(left or ""),
        graph=graph,
    )


def _ids(text: str) -> tuple[int, ...]:
    """``(244, 245, 262)`` of ``244-245,262``; what is no such list is left out."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = integer(first), integer(last or first)
        if begin is not None and end is not None and 0 <= end - begin < _MOST - len(found):
            found.extend(range(begin, end + 1))
    return tuple(found)


WITNESS = Witness(name=NAME, gates=(MARK,), read=read, bulk=True)

"""Marks of ``trace-analyze record`` where a step of a PyTorch program begins (``record.ops.steps``)."""

from __future__ import annotations

import polars as pl

from analyzer.model import STEP_MARKS, Reading
from analyzer.witness import Fetch, Witness

NAME = "recorded_steps"
MARK = "[RECORD] STEP "
_FORM = r"^\[RECORD\] STEP n=[0-9]+$"


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001 (a mark stands alone)
    """Read the marks of one source. A line that only quotes one is somebody else's."""
    is_mark = pl.col("text").str.contains(_FORM)
    marks = frame.filter(is_mark)
    return Reading(
        step_marks=marks.select(*STEP_MARKS),
        parsed=marks["line"].to_list(),
        not_mine=frame.filter(~is_mark)["line"].to_list(),
    )


WITNESS = Witness(name=NAME, gates=(MARK,), read=read, bulk=True)

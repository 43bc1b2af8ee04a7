"""Identical repeats are one fault with a count (formats.md 5.5)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.incident.fold import fold_repeats
from analyzer.model import FaultRecord
from tests.incident.records import after, fault


def folded(*records: FaultRecord) -> list[FaultRecord]:
    return after(fold_repeats, records)


def test_repeats_are_counted_in_the_first() -> None:
    (one,) = folded(fault(1), fault(5, last_line=9), fault(7, count=3))
    assert (one.line, one.last_line, one.count) == (1, 9, 5)


@pytest.mark.parametrize(
    "more",
    [{"process": "b"}, {"text": "x"}, {"code": 700}, {"kernel": "k"}, {"teardown": True}, {"source": 1}],
)
def test_what_says_something_else_stays(more: dict[str, Any]) -> None:
    assert len(folded(fault(1), fault(2, **more))) == 2


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=30))
def test_no_fault_is_lost(texts: list[str]) -> None:
    left = folded(*(fault(n + 1, text=text) for n, text in enumerate(texts)))
    assert sum(one.count for one in left) == len(texts)
    assert [one.text for one in left] == list(dict.fromkeys(texts))

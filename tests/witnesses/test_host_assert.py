"""Asserts of host code, which say what the abort after them is about (formats.md 3.21)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.model import FaultRecord
from analyzer.pipeline import analyze
from analyzer.witnesses.host_assert import WITNESS

Read = Any
TEXT = "python3: /srv/x/alloc.cpp:41: void alloc(int): Assertion `n > 0' failed."


@pytest.mark.parametrize(
    ("text", "function"),
    [
        (TEXT, "void alloc(int)"),
        ("/srv/x/alloc.cpp:41: Assertion `n > 0' failed.", ""),
        (
            "serve: /srv/x/alloc.cpp:41: T f(T&) [with T = int; S = a::b]: Assertion `n > 0' failed.",
            "T f(T&) [with T = int; S = a::b]",
        ),
    ],
)
def test_forms(read: Read, text: str, function: str) -> None:
    reading = read(WITNESS, [text])
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.site, fault.text) == ("host_abort", "host", text)
    assert fault.location is not None
    assert (fault.location.file, fault.location.line, fault.location.function) == (
        "/srv/x/alloc.cpp",
        41,
        function,
    )
    assert not reading.losses


@pytest.mark.parametrize(
    "text",
    [
        "  // x.cpp:41: f(): Assertion `n > 0' failed.",
        f'    printf("{TEXT}\\n");',
        "E   AssertionError: Assertion `n > 0' is what we expect",
        "note: Assertion passed",
    ],
)
def test_source_code_and_other_words_are_no_assert(read: Read, text: str) -> None:
    reading = read(WITNESS, [text])
    assert (reading.records, reading.losses) == ([], [])


def test_the_assert_is_the_cause_of_the_abort(tmp_path: Path) -> None:
    path = tmp_path / "input.log"
    path.write_text(f"{TEXT}\nAborted (core dumped)\n", encoding="utf-8")
    found = analyze([str(path)])
    assert [(one.line, one.role) for one in found.faults] == [(1, "root"), (2, "cascade")]
    assert "n > 0" in found.conclusion.statement
    assert found.conclusion.suspect is None

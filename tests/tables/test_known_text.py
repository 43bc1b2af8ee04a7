"""The known text at the start of a message decides, whatever follows (formats.md 7.2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.tables.known_text import by_text_start

IMA = "an illegal memory access was encountered"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{IMA} (rank 3)", 700),
        (f"{IMA}\ufffd\ufffd", 700),
        ("misaligned addressF0327 12:00:00.000 x.cc:12] CUDA error: misaligned address", 716),
        ("Misaligned Address.", 716),
    ],
)
def test_longest_known_text_at_the_start_decides(text: str, code: int) -> None:
    found = by_text_start(text)
    assert found is not None
    assert found[0].code == code


def test_text_that_begins_otherwise_is_unknown() -> None:
    assert by_text_start(f"maybe {IMA}") is None


@pytest.mark.parametrize(
    ("line", "kind", "code"),
    [
        (f"CUDA error: {IMA} (rank 3)".encode(), "illegal_address", 700),
        (f"RuntimeError: CUDA error: {IMA}".encode() + b"\xff\xfe", "illegal_address", 700),
        (
            (
                b"F0327 12:00:00.000 x.cc:12] CUDA error: misaligned addressF0327 12:00:00.000 x.cc:12] "
                b"CUDA error: misaligned address"
            ),
            "misaligned_address",
            716,
        ),
    ],
)
def test_what_follows_an_error_costs_neither_kind_nor_code(
    tmp_path: Path, line: bytes, kind: str, code: int
) -> None:
    path = tmp_path / "input.log"
    path.write_bytes(line + b"\n")
    (fault,) = analyze([str(path)]).faults
    assert (fault.kind, fault.code, fault.sticky, fault.role) == (kind, code, True, "root")


def test_sentence_about_an_error_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "input.log"
    path.write_text(f"if you see CUDA error: {IMA}, then restart\n", encoding="utf-8")
    assert not analyze([str(path)]).faults

"""One pass over a file: what is kept, under which numbers."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analyzer.ingest.lines import Scan, lines_at, lines_with, literal_pattern, scan
from tests.oplog import block, complete, launch, text

ERROR = "RuntimeError: CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS"


def scanned(tmp_path: Path, lines: list[str], literals: tuple[str, ...] = ("CUDA call failed: ",)) -> Scan:
    path = tmp_path / "serve.log"
    path.write_bytes(text(lines))
    return scan(path, literals)


def test_op_heads_are_cut_into_columns(tmp_path: Path) -> None:
    lines = ["start", launch("Epilogue(matmul, silu, operandIndices=[0])", 7), complete("mul", 8)]
    heads = scanned(tmp_path, lines).op_heads.with_columns(pl.col("head", "detail").cast(pl.String))
    assert heads.rows() == [
        (2, "[OP] LAUNCH Epilogue(matmul, silu, operandIndices=[0]) ", 7, " target=gpu:0"),
        (3, "[OP] COMPLETE mul ", 8, " target=gpu:0"),
    ]


def test_detail_keeps_its_own_brackets(tmp_path: Path) -> None:
    """Only the first ``[id=...]`` is the id."""
    (row,) = scanned(tmp_path, ["[OP] LAUNCH mul [id=7] shape=[1,2];x=[id=3]"]).op_heads["detail"]
    assert row == " shape=[1,2];x=[id=3]"


def test_id_that_is_no_number_is_null(tmp_path: Path) -> None:
    heads = scanned(tmp_path, ["[OP] LAUNCH mul [id=x]", "[OP] LAUNCH mul", f"[OP] LAUNCH mul [id={2**70}]"])
    assert heads.op_heads["id"].to_list() == [None, None, None]


def test_only_lines_with_a_literal_are_kept(tmp_path: Path) -> None:
    """All else is only counted."""
    found = scanned(tmp_path, ["one", ERROR, "three", f"W1127 [rank0]: {ERROR}", "five"])
    assert found.total_lines == 5
    assert found.gated["line"].to_list() == [2, 4]


def test_line_of_a_printed_environment_is_kept(tmp_path: Path) -> None:
    """It has no space; it tells a mode."""
    found = scanned(tmp_path, ["PATH=/bin", "CUDA_LAUNCH_BLOCKING=1"], ("LAUNCH_BLOCKING=",))
    assert found.gated["line"].to_list() == [2]


def test_op_record_behind_an_envelope_passes_the_gate(tmp_path: Path) -> None:
    found = scanned(tmp_path, [f"[rank0]: {launch('mul', 3)}"])
    assert found.op_heads.is_empty()
    assert found.gated["line"].to_list() == [1]


def test_closing_lines_are_found_by_their_beginning(tmp_path: Path) -> None:
    lines = [*block("LAUNCH", "mul", 0), *block("COMPLETE", "mul", 0, ("a.py:1:f",), ("b.py:2:g",))]
    assert scanned(tmp_path, lines).closers["line"].to_list() == [5, 9]


@pytest.mark.parametrize("char", list(r"\.+*?()|[]{}^$#&-~"))
def test_literals_are_literal(tmp_path: Path, char: str) -> None:
    """A gate such as ``FAULT: (x)`` is no regular expression."""
    found = scanned(tmp_path, [f"x a{char}b", "x ab", "x a_b"], (f"a{char}b",))
    assert found.gated["line"].to_list() == [1]


def test_literal_that_contains_another_one_is_covered_by_it() -> None:
    assert literal_pattern(["MODULAR_DEBUG", "MODULAR_DE", "x", "x"]) == "MODULAR_DE|x"


def test_lines_are_fetched_by_number_and_by_literal(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    path.write_bytes(b"a1\nb2\n\na4\n")
    assert lines_at(path, pl.Series([2, 4], dtype=pl.UInt32)).rows() == [(2, "b2"), (4, "a4")]
    assert lines_with(path, ["a"]).rows() == [(1, "a1"), (4, "a4")]


def test_name_of_the_file_is_no_pattern(tmp_path: Path) -> None:
    """``serve[1]*.log`` is a file, not a glob."""
    path = tmp_path / "serve[1]*.log"
    path.write_bytes(b"one 1\n")
    (tmp_path / "serve1x.log").write_bytes(b"two\nthree\n")
    assert scan(path, ["one"]).total_lines == 1

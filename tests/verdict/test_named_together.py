"""Several candidates where one is asked for: all are told, none is proven alone."""

from __future__ import annotations

from pathlib import Path

from analyzer.pipeline import analyze
from analyzer.schema import Result

ABORT = "Callback: Queue 0x7fc2 aborting with error : HSA_STATUS_ERROR_MEMORY_FAULT: text. code: 0x2b"
OTHER = ABORT.replace("0x7fc2", "0x7fc3")
OPS = ["[OP] LAUNCH custom__gather [id=1] target=gpu:0", "[OP] LAUNCH mo.softmax [id=2] target=gpu:0"]


def assert_text(expression: str, function: str = "operator()") -> str:
    where = f"/p/x.cu:{len(expression)}: {function}: block: [0,0,0], thread: [0,0,0]"
    return f"{where} Assertion `{expression}` failed."


def analysed(folder: Path, *lines: str) -> Result:
    path = folder / "input.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze([str(path)])


def test_kernels_of_one_report_are_ranked(tmp_path: Path) -> None:
    found = analysed(tmp_path, ABORT, OTHER, "Kernel Name: gather_a", "Kernel Name: rms_norm")
    assert found.conclusion.confidence == "ranked"
    assert "gather_a or rms_norm" in found.conclusion.statement
    assert {one.op.name for one in found.suspects} == {"gather_a", "rms_norm"}
    assert [one.kernel for one in found.faults] == ["gather_a", "rms_norm"]
    assert "which of them faulted is not told" in found.faults[1].role_reason


def test_kernels_of_one_report_are_joined_to_launches(tmp_path: Path) -> None:
    found = analysed(tmp_path, *OPS, ABORT, OTHER, "Kernel Name: custom__gather", "Kernel Name: softmax_k")
    assert found.conclusion.confidence == "ranked"
    assert {one.op.id for one in found.suspects} == {1, 2}


def test_asserts_without_a_tag_are_all_told(tmp_path: Path) -> None:
    """A kernel in the second line is no reason to take that one."""
    found = analysed(tmp_path, assert_text("i < n"), assert_text("index < size", "select_small"))
    assert found.conclusion.suspect is None
    assert "i < n" in found.conclusion.statement
    (note,) = [note for note in found.conclusion.notes if "without a tag" in note]
    assert "i < n" in note
    assert "index < size" in note


def test_one_assert_has_no_such_note(tmp_path: Path) -> None:
    found = analysed(tmp_path, assert_text("i < n"), assert_text("i < n"))
    assert not [note for note in found.conclusion.notes if "without a tag" in note]


def test_what_the_end_of_the_log_leaves_of_an_expression_is_no_other_assert(tmp_path: Path) -> None:
    trap = "Assertion failed: /srv/a.cu:12, condition: tokens != 0"
    path = tmp_path / "input.log"
    path.write_text(f"{trap}\n{trap[:-5]}", encoding="utf-8")
    assert not [note for note in analyze([str(path)]).conclusion.notes if "without a tag" in note]

"""Where the window of launches that can be guilty begins and ends."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord
from analyzer.schema import SourceFrame
from analyzer.timeline.build import build_timeline
from analyzer.window.borders import Span, find_span
from tests.faults_made import fault
from tests.oplog import MARK, STEP, launch, loaded, mark_frame, pair, steps

REPORT = "RuntimeError: CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS"
STATEMENT = SourceFrame(
    file="max_steps.py", line=50, function="main", text='log.info("step %d logits %.4f", step, x)'
)


def span(lines: list[str], *, reported: int | None = None, report_line: int | None = None) -> Span:
    """The span for a report behind ``lines`` (or at ``report_line``); ``reported`` = op id that it names."""
    line = report_line or len(lines) + 1
    record = fault(line=line, python=STATEMENT)
    return _span(lines, record, reported, None)


def _span(lines: list[str], record: FaultRecord, reported: int | None, end_of_log: int | None) -> Span:
    with loaded(lines) as one:
        marks = [(number, "") for number, text in enumerate(lines, start=1) if text == MARK]
        ops = build_timeline(one.ops, mark_frame(marks)).ops
        row = None
        if reported is not None:
            (row,) = ops.filter(ops["id"] == reported).to_dicts()
        return find_span(ops, record, row, one.reader, end_of_log)


def launches(lines: list[str], found: Span) -> list[int]:
    """Ids launched inside the span."""
    inside = lines[max(0, found.begin_line) : found.end_line - 1]
    return [int(line.split("[id=")[1].split("]")[0]) for line in inside if line.startswith("[OP] LAUNCH")]


def test_value_printed_between_two_steps_proves_the_step_before_it() -> None:
    """``step 1 logits 64.0`` stands behind step 1: only step 2 can be guilty."""
    told = ["step 0 logits 64.0000", "step 1 logits 64.0000"]
    lines = [*steps(1), told[0], *steps(1, first_id=3), told[1], *steps(1, first_id=6)]
    found = span(lines)
    assert launches(lines, found) == [6, 7, 8]
    assert (found.proven, found.begin.line, found.begin.proof) == (True, 16, "same_statement")
    assert "'step 1 logits 64.0000'" in found.begin.reason


def test_last_proof_counts() -> None:
    lines = [*steps(1), "step 0 logits 64.0", *steps(1, first_id=3), "step 1 logits 64.0"]
    assert launches(lines, span([*lines, *steps(1, first_id=6)])) == []
    lines += steps(1, first_id=6)
    assert launches(lines, span(lines)) == [6, 7, 8]


def test_value_printed_inside_a_step_proves_only_the_step_before() -> None:
    """The server launches ahead of its results: the value may be of the step before."""
    lines = [*steps(1), "argmax 3", *steps(1, first_id=3), "argmax 17", *steps(2, first_id=6)]
    cut = lines.index("argmax 17")
    ahead = [*lines[:cut], *lines[cut + 1 : cut + 4], "argmax 17", *lines[cut + 4 :]]
    found = span(ahead)
    assert launches(ahead, found) == [6, 7, 8, 9, 10, 11]
    assert found.proven
    assert "work before step 2 was sound" in found.begin.reason


@pytest.mark.parametrize("first", ["step 0 logits 64.0", "step 1 logits 64.0", "token ids [5, 7]"])
def test_server_that_launches_ahead_clears_no_step_in_flight(first: str) -> None:
    """Two steps stand before the first value: whatever its number says, the second is not proven by it."""
    lines = [*steps(2), first, *steps(1, first_id=6)]
    found = span(lines)
    assert launches(lines, found) == [3, 4, 5, 6, 7, 8]
    assert found.proven


def test_window_does_not_reach_behind_a_restart() -> None:
    """The launches of the server before are gone with it."""
    lines = [*steps(1), *steps(1)]
    assert launches(lines, span(lines)) == [0, 1, 2]
    assert span(lines).begin_line >= len(steps(1))


@pytest.mark.parametrize("lag", [1, 2])
def test_step_number_that_lags_behind_proves_no_more_than_it_says(lag: int) -> None:
    """``step 2`` printed behind step 3: overlap scheduling prints results late."""
    lines = [*steps(4), f"step {3 - lag} logits 64.0", *steps(1, first_id=12)]
    found = span(lines)
    assert launches(lines, found)[0] == 3 * (4 - lag)
    assert found.proven


def test_step_counter_of_its_own_is_no_lag() -> None:
    """A counter that starts anew for each request says nothing about steps of the process."""
    lines = [*steps(6), "step 0 logits 64.0", *steps(1, first_id=18)]
    assert launches(lines, span(lines)) == [18, 19, 20]


def test_without_proof_the_last_two_steps_are_taken() -> None:
    """The fault can be one step back (overlap scheduling), and that is said."""
    lines = [*steps(5), "step 4 dispatched"]
    found = span(lines)
    assert launches(lines, found) == [9, 10, 11, 12, 13, 14]
    assert not found.proven
    assert found.begin.line is None
    assert "no line proves an earlier step sound" in found.begin.reason


def test_single_step_without_proof_keeps_all_launches() -> None:
    lines = steps(1)
    found = span(lines)
    assert launches(lines, found) == [0, 1, 2]
    assert "all launches so far stay possible" in found.begin.reason


def test_without_steps_all_launches_stay_possible() -> None:
    """No mark, no period: nothing says where a step begins."""
    lines = [*pair("a", 0), *pair("b", 1), *pair("c", 2)]
    found = span(lines)
    assert launches(lines, found) == [0, 1, 2]
    assert "steps cannot be told apart" in found.begin.reason


def test_launch_that_returned_the_error_ends_the_window() -> None:
    """It never ran, nor did what came after it (rule 3)."""
    lines = [*steps(1), *steps(1, first_id=3)]
    record = fault(line=len(lines) + 1, site="launch")
    found = _span(lines, record, reported=4, end_of_log=None)
    assert launches(lines, found) == [0, 1, 2, 3]
    assert f"the launch of {STEP[1]} returned the error" in found.end.reason


def test_report_inside_the_log_ends_the_window() -> None:
    """What was logged behind the report was launched after it."""
    lines = [*steps(2), REPORT, *steps(1, first_id=6)]
    assert launches(lines, span(lines, report_line=15)) == [0, 1, 2, 3, 4, 5]


def test_fault_of_another_input_has_no_place_in_the_log() -> None:
    """A cuda-gdb text given beside the log: the window ends with the log."""
    lines = steps(3)
    found = _span(lines, fault(source=1, line=4, witness="cuda_gdb"), None, len(lines) + 1)
    assert launches(lines, found) == [3, 4, 5, 6, 7, 8]
    assert found.end.reason == "cuda_gdb has no place in the op log; the window ends with it"


def test_proof_behind_the_last_launch_leaves_no_empty_window() -> None:
    """A value printed right before the report cannot clear everything: something failed."""
    lines = [*steps(3), "step 2 logits 64.0"]
    found = span(lines)
    assert launches(lines, found) == [3, 4, 5, 6, 7, 8]
    assert not found.proven


def test_line_of_another_rank_proves_nothing() -> None:
    """Its device is another one."""
    lines = [f"[rank0]: {line}" for line in steps(4)]
    lines += ["[rank1]: step 3 logits 64.0", *(f"[rank0]: {line}" for line in steps(1, first_id=12))]
    with loaded(lines) as one:
        marks = [(n, "rank0") for n, text in enumerate(lines, start=1) if text.endswith(MARK)]
        ops = build_timeline(one.ops, mark_frame(marks)).ops
        record = fault(line=len(lines) + 1, process="rank0", python=STATEMENT)
        found = find_span(ops, record, None, one.reader, None)
    assert not found.proven


def test_long_proof_is_shortened_in_the_reason() -> None:
    lines = [*steps(2), "step 1 logits 64.0 " + "x" * 200, launch("a", 6)]
    assert "xxx...' was printed earlier by the statement that met the fault" in span(lines).begin.reason

"""Which execution of the graph each op belongs to."""

from __future__ import annotations

from analyzer.timeline.build import build_timeline
from analyzer.timeline.steps import find_period
from tests.oplog import MARK, STEP, column, complete, launch, loaded, mark_frame, pair, steps, timeline


def test_lines_of_the_executor_mark_the_steps() -> None:
    """One such line stands before each execution."""
    found = timeline(steps(3), marks=True)
    assert column(found, "step") == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_op_before_the_first_mark_is_of_no_known_step() -> None:
    found = timeline([*pair("warm_up", 0), *steps(2, first_id=1)], marks=True)
    assert column(found, "step") == [-1, 0, 0, 0, 1, 1, 1]


def test_marks_without_ops_between_them_count_once() -> None:
    """Compiling prints the line as well; steps are executions that launched something."""
    found = timeline([MARK, MARK, *steps(2)], marks=True)
    assert column(found, "step") == [0, 0, 0, 1, 1, 1]


def test_marks_number_steps_of_different_length() -> None:
    """A prefill and its decode steps have different ops; marks tell them apart all the same."""
    prefill = [MARK, *pair("prefill", 0), *pair("attention", 1)]
    found = timeline([*prefill, *steps(2, first_id=2)], marks=True)
    assert column(found, "step") == [0, 0, 1, 1, 1, 2, 2, 2]


def test_marks_of_one_process_do_not_cut_the_steps_of_another() -> None:
    lines = [f"[rank{rank}]: {line}" for line in steps(2) for rank in (0, 1)]
    found = timeline(lines, marks=True)
    zero = [s for s, p in zip(column(found, "step"), column(found, "process"), strict=True) if p == "rank0"]
    assert zero == [0, 0, 0, 1, 1, 1]


def test_without_marks_the_period_of_the_names_is_used() -> None:
    """Old versions print no such line; the graph repeats its ops."""
    assert column(timeline(steps(3, mark=None)), "step") == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_inner_ops_are_of_the_step_of_their_outer_op() -> None:
    lines: list[str] = []
    for step in range(3):
        inner = pair("CUBLAS_matmul", 3 * step + 1)
        lines += [*pair("matmul", 3 * step, *inner), *pair("softmax", 3 * step + 2)]
    assert column(timeline(lines), "step") == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_unfinished_last_execution_is_a_step() -> None:
    """The step that failed is a prefix of a sound one."""
    found = timeline(steps(3, mark=None)[:14])
    assert column(found, "step") == [0, 0, 0, 1, 1, 1, 2]


def test_log_that_ends_inside_an_op_keeps_its_steps() -> None:
    """The ops inside look like outer ones, as their outer op never completes in the log."""
    sound = steps(3, mark=None)
    found = timeline([*sound, launch("matmul", 9), *pair("CUBLAS_matmul", 10)])
    assert column(found, "step") == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]


def test_sequence_that_does_not_repeat_has_no_steps() -> None:
    """Null, not 0: a period that fails is no period."""
    lines = [*pair("a", 0), *pair("b", 1), *pair("a", 2), *pair("c", 3), *pair("a", 4), *pair("b", 5)]
    assert column(timeline(lines), "step") == [None] * 6


def test_single_execution_has_no_steps_without_a_mark() -> None:
    """Once is no period."""
    assert column(timeline(steps(1, mark=None)), "step") == [None] * 3
    assert column(timeline(steps(1)), "step") == [None] * 3
    assert column(timeline(steps(1), marks=True), "step") == [0] * 3


def test_steps_of_a_second_run_count_on() -> None:
    """A step number names one execution of a process, not one of each run."""
    found = timeline([*steps(2, mark=None), *steps(2, mark=None)])
    assert column(found, "run") == [0] * 6 + [1] * 6
    assert column(found, "step") == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_steps_of_untagged_writers_are_unknown() -> None:
    """They are at different steps, and no line tells whose mark it is."""
    one, other = steps(2), steps(2)
    found = timeline([line for both in zip(one, other, strict=True) for line in both], marks=True)
    assert found.untagged_writers
    assert set(column(found, "step")) == {None}


def test_log_without_ops_has_a_timeline_with_all_columns() -> None:
    with loaded(["nothing here"]) as one:
        found = build_timeline(one.ops, mark_frame([]))
    assert found.ops.is_empty()
    assert {"launch_line", "completion_line", "parent", "depth", "step", "run"} <= set(found.ops.columns)


def test_period_is_the_smallest_that_holds_to_the_end() -> None:
    with loaded([*steps(4, mark=None), *pair(STEP[0], 12)]) as one:
        names = one.ops.filter(one.ops["launch"])["name"]
    assert find_period(names) == len(STEP)
    assert find_period(names.head(len(STEP))) is None
    assert find_period(names.head(1)) is None


def test_completion_of_another_run_ends_no_step() -> None:
    """A completion without launch leaves the numbering alone."""
    found = timeline([complete("lost", 99), *steps(2, mark=None)])
    assert column(found, "step") == [0, 0, 0, 1, 1, 1]

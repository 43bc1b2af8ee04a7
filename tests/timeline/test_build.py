"""Bodies of multi-line records, and what is read from them."""

from __future__ import annotations

import polars as pl

from analyzer.model import OpDetail
from analyzer.timeline.build import build_timeline
from analyzer.timeline.facts import gather_facts, matmul_shapes, read_details, user_frame
from tests.oplog import TRACE, block, column, complete, launch, loaded, mark_frame, pair, timeline

USER = ("srv/app/serve.py:53:<module>", "srv/app/serve.py:26:gelu", "graph/ops/elementwise.py:930:gelu")
OTHER = ("srv/app/serve.py:53:<module>", "srv/app/serve.py:27:scale", "max/graph/value.py:1158:__mul__")


def details(lines: list[str]) -> dict[int, OpDetail]:
    """Details of all launches by launch line."""
    with loaded(lines) as one:
        found = build_timeline(one.ops, mark_frame([]))
        return read_details(found.ops.to_dicts(), one.reader)


def test_body_ends_at_its_closing_line() -> None:
    """Head, frames, ``;target=``: the record is five lines long (observed.md 2)."""
    lines = [*block("LAUNCH", "mul", 3), *pair("elementwise(mogg.foreach)", 4), *block("COMPLETE", "mul", 3)]
    assert column(timeline(lines), "body_last") == [5, None]


def test_closing_line_behind_the_next_record_is_not_taken() -> None:
    """A body that was cut off has no end; the next record's closing line is its own."""
    lines = [*block("LAUNCH", "mul", 3)[:-1], *block("LAUNCH", "add", 4)]
    assert column(timeline(lines), "body_last") == [None, 9]


def test_one_line_record_has_no_body() -> None:
    """The ``;target=`` line of somebody else behind it is not its body."""
    assert column(timeline([launch("mul", 3), ";target=gpu:0"]), "body_last") == [None]


def test_body_of_each_process_is_its_own() -> None:
    """Line-wise interleaving puts the frames of two processes between one another."""
    zero, one = block("LAUNCH", "mul", 0, USER), block("LAUNCH", "add", 0, OTHER)
    woven = [line for both in zip(zero, one, strict=True) for line in both]
    tagged = [f"[rank{number % 2}]: {line}" for number, line in enumerate(woven)]
    assert column(timeline(tagged), "body_last") == [9, 10]
    found = details(tagged)
    assert [[frame.line for frame in stack] for stack in found[1].stacks] == [[53, 26, 930]]
    assert [[frame.line for frame in stack] for stack in found[2].stacks] == [[53, 27, 1158]]


def test_stacks_of_a_fused_op_are_told_apart() -> None:
    """They follow one another without separator; the outermost frame begins a new one (observed.md 4)."""
    detail = details(block("LAUNCH", "Elementwise(gelu, mul)", 0, USER, OTHER))[1]
    assert (len(detail.stacks), detail.fused_from, detail.device) == (2, 2, "gpu:0")
    frames = [user_frame(stack) for stack in detail.stacks]
    assert [frame and frame.line for frame in frames] == [26, 27]


def test_innermost_frame_stands_for_a_stack_of_the_framework_only() -> None:
    detail = details(block("LAUNCH", "matmul", 0, TRACE[-1:]))[1]
    frame = user_frame(detail.stacks[0])
    assert frame is not None
    assert frame.line == 79


def test_body_cut_off_by_the_end_of_the_log_gives_the_frames_that_are_there() -> None:
    detail = details(block("LAUNCH", "mul", 0, USER)[:-1])[1]
    assert [[frame.line for frame in stack] for stack in detail.stacks] == [[53, 26, 930]]


def test_device_is_read_though_another_text_is_glued_to_the_record() -> None:
    """``target=gpu:1RuntimeError: ...``: two writers in one line (formats.md 7.2)."""
    with loaded([launch("mul", 0, target="gpu:1") + "RuntimeError: CUDA call failed: X"]) as one:
        found = build_timeline(one.ops, mark_frame([]))
        (facts,) = gather_facts(found.ops, found.ops.clear(), one.reader, {})
    assert facts.ref.device == "gpu:1"


def test_matmul_lines_between_launch_and_completion_give_its_shapes() -> None:
    """``MxNxK`` and the dtypes are of the enclosing matmul (observed.md 6)."""
    lines = [
        launch("matmulmo.matmul", 0),
        "INFO::: MxNxK: 16x64x128",
        "INFO::: Data types: A= bfloat16  B= float8  C= float32",
        complete("matmulmo.matmul", 0),
    ]
    with loaded(lines) as one:
        found = build_timeline(one.ops, mark_frame([]))
        shapes = matmul_shapes(found.ops.row(0, named=True), one.reader)
    assert [(t.shape, t.dtype, t.role) for t in shapes] == [
        ([16, 128], "bfloat16", "input"),
        ([128, 64], "float8", "input"),
        ([16, 64], "float32", "output"),
    ]


def test_facts_tell_what_is_new_and_what_ran_before() -> None:
    """Novelty compares names with those before the window; inner ops belong to their outer op."""
    before, window = [*pair("mul", 0), *pair("mul", 1)], [*pair("mul", 2, *pair("inner", 3)), *pair("new", 4)]
    with loaded([*before, *window]) as one:
        ops = build_timeline(one.ops, mark_frame([])).ops
        split = pl.col("launch_line") > len(before)
        mul, new = gather_facts(ops.filter(split), ops.filter(~split), one.reader, {})
    assert (mul.novel, mul.count_before, [inner.id for inner in mul.inner]) == (False, 2, [3])
    assert (new.novel, new.count_before) == (True, 0)


def test_nothing_is_new_where_there_is_nothing_to_compare_with() -> None:
    """Null, not true: the first step of a log has no sound step before it."""
    with loaded(pair("mul", 0)) as one:
        ops = build_timeline(one.ops, mark_frame([])).ops
        (facts,) = gather_facts(ops, ops.clear(), one.reader, {})
    assert facts.novel is None

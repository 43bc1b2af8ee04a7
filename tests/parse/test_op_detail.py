"""Details of op records (excerpts of shared/corpus/max/oob_async.log, and hand-written cases)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.grammar import GrammarError
from analyzer.model import OpDetail
from analyzer.parse.op_detail import body_lines, parse_op_detail, split_stacks
from analyzer.schema import SourceFrame, TensorInfo

MATMUL_BODY = """\
srv/app/max_cases.py:57:<module>
srv/app/max_cases.py:47:main
srv/app/max_cases.py:21:build
srv/app/max_cases.py:12:norm_block
max/graph/value.py:1158:__mul__
graph/ops/elementwise.py:65:elementwise_op
srv/app/max_cases.py:57:<module>
srv/app/max_cases.py:47:main
srv/app/max_cases.py:21:build
srv/app/max_cases.py:11:norm_block
graph/ops/elementwise.py:930:gelu
graph/ops/elementwise.py:781:_activation
srv/app/max_cases.py:57:<module>
srv/app/max_cases.py:47:main
srv/app/max_cases.py:21:build
srv/app/max_cases.py:10:norm_block
graph/ops/matmul.py:79:matmul
[fused from 3 ops];target=gpu:0""".splitlines()
CUSTOM_BODY = """\
srv/app/max_cases.py:57:<module>
srv/app/max_cases.py:26:build
graph/ops/custom.py:109:custom
;target=gpu:0""".splitlines()


def test_an_inner_record_has_its_detail_on_the_head_line() -> None:
    assert parse_op_detail(" target=gpu:0", []) == OpDetail(device="gpu:0")


def test_an_older_record_prints_operands() -> None:
    detail = parse_op_detail(
        "A=1x2048x8192xbfloat16;B=8192x8192xbfloat16;C=1x2048x8192xbfloat16;transpose_b=false;target=gpu:1",
        [],
    )
    assert detail.device == "gpu:1"
    assert [key for key, _ in detail.attributes] == ["A", "B", "C", "transpose_b"]
    assert detail.tensors == (
        TensorInfo(shape=[1, 2048, 8192], dtype="bfloat16"),
        TensorInfo(shape=[8192, 8192], dtype="bfloat16"),
        TensorInfo(shape=[1, 2048, 8192], dtype="bfloat16", role="output"),
    )


@pytest.mark.parametrize(
    ("head", "shape"), [("shape=1x2048x8192;vector_width=16", [1, 2048, 8192]), ("shape=8192", [8192])]
)
def test_a_shape_without_dtype_has_an_empty_dtype(head: str, shape: list[int | None]) -> None:
    assert parse_op_detail(head, []).tensors == (TensorInfo(shape=shape, dtype=""),)


def test_empty_heads_and_empty_values() -> None:
    assert parse_op_detail(" ", []) == parse_op_detail("", []) == OpDetail()
    assert parse_op_detail("flag;x=;", []).attributes == (("flag", ""), ("x", ""))


def test_a_single_op_has_one_stack_outermost_first() -> None:
    detail = parse_op_detail("", CUSTOM_BODY)
    assert (detail.device, detail.fused_from) == ("gpu:0", None)
    assert [frame.function for frame in detail.stacks[0]] == ["<module>", "build", "custom"]
    assert detail.stacks[0][-1] == SourceFrame(file="graph/ops/custom.py", line=109, function="custom")


def test_a_new_stack_starts_where_the_outermost_frame_recurs() -> None:
    detail = parse_op_detail("", MATMUL_BODY)
    assert detail.fused_from == 3
    assert [len(stack) for stack in detail.stacks] == [6, 6, 5]
    assert [stack[-1].function for stack in detail.stacks] == ["elementwise_op", "_activation", "matmul"]


def test_a_recursive_function_is_one_stack_when_no_fusion_is_announced() -> None:
    body = ["a/b/c.py:3:walk", "a/b/c.py:9:step", "a/b/c.py:3:walk", ";target=gpu:0"]
    assert [len(stack) for stack in parse_op_detail("", body).stacks] == [3]


def test_the_stacks_found_are_kept_when_the_count_differs() -> None:
    body = ["a/b/c.py:3:f", "a/b/c.py:9:g", "a/b/d.py:3:f", "[fused from 4 ops];target=gpu:0"]
    detail = parse_op_detail("", body)
    assert (detail.fused_from, len(detail.stacks)) == (4, 1)


@pytest.mark.parametrize("cut", range(len(MATMUL_BODY)))
def test_a_cut_body_is_read_as_far_as_it_goes(cut: int) -> None:
    detail = parse_op_detail("", MATMUL_BODY[:cut])
    assert (detail.device, detail.fused_from) == (None, None)
    assert sum(map(len, detail.stacks)) == cut
    assert body_lines(MATMUL_BODY[:cut]) == tuple(range(cut))


FOREIGN = [
    "INFO::: MxNxK: 64x64x64",
    "12:00:01",
    "2026-01-02 12:00:01",
    "127.0.0.1:80:x",
    "error: kernel.cu:12: bad",
    "[OP] LAUNCH CUBLAS_matmul [id=2] target=gpu:0",
    "srv/app/max_cases.py:57:<mod",
    "loaded",
    "key=value",
    "",
]


@pytest.mark.parametrize("line", FOREIGN)
def test_lines_of_another_writer_do_not_belong_to_the_record(line: str) -> None:
    body = [*CUSTOM_BODY[:2], line, *CUSTOM_BODY[2:], CUSTOM_BODY[0]]
    assert body_lines(body) == (0, 1, 3, 4)  # and nothing after the closing line
    assert parse_op_detail("", body) == parse_op_detail("", CUSTOM_BODY)


@pytest.mark.parametrize(
    ("line", "file", "function"),
    [
        ("opt/venv/bin/max:8:<module>", "opt/venv/bin/max", "<module>"),
        ("my project/run.py:5:f.<locals>.<lambda>", "my project/run.py", "f.<locals>.<lambda>"),
        ("<frozen importlib._bootstrap>:241:_call", "<frozen importlib._bootstrap>", "_call"),
        ("<stdin>:1:<module>", "<stdin>", "<module>"),
        ("srv/größe.py:1:prüfe", "srv/größe.py", "prüfe"),
        ("srv/app/x.py:1:f\r", "srv/app/x.py", "f"),
    ],
)
def test_unusual_frames(line: str, file: str, function: str) -> None:
    ((frame,),) = parse_op_detail("", [line]).stacks
    assert (frame.file, frame.function) == (file, function)


@pytest.mark.parametrize("head", ["a b", "=1", "a.py:5:f", "[fused from x ops]", "1=2"])
def test_a_head_that_is_no_detail_is_refused(head: str) -> None:
    with pytest.raises(GrammarError):
        parse_op_detail(head, [])


FRAMES = st.builds(
    lambda file, line, function: SourceFrame(file=file, line=line, function=function),
    st.sampled_from(["srv/app/x.py", "graph/ops/matmul.py", "bin/max"]),
    st.integers(0, 10**6),
    st.sampled_from(["<module>", "main", "f.<locals>.g", "__call__"]),
)


@given(FRAMES, st.lists(st.lists(FRAMES, max_size=4), min_size=1, max_size=5))
def test_stacks_with_one_outermost_frame_survive(
    outermost: SourceFrame, inner: list[list[SourceFrame]]
) -> None:
    stacks = [[outermost, *(f for f in stack if f != outermost)] for stack in inner]
    lines = [f"{f.file}:{f.line}:{f.function}" for stack in stacks for f in stack]
    detail = parse_op_detail("", [*lines, f"[fused from {len(stacks)} ops];target=gpu:0"])
    assert [list(stack) for stack in detail.stacks] == stacks


def test_no_frames_are_no_stacks() -> None:
    assert split_stacks([]) == ()


@given(st.text(alphabet="A=1x2;target:gpu[fused from]ops/.py<>\n", max_size=50))
def test_any_text_is_a_detail_or_refused(text: str) -> None:
    """No other exception escapes; bodies are never refused."""
    parse_op_detail("", text.split("\n"))
    try:
        parse_op_detail(text, [])
    except GrammarError:
        return

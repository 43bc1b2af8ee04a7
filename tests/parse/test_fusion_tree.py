"""Fusion trees (excerpts of shared/corpus/max, MAX 26.7, and hand-written cases)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.grammar import GrammarError
from analyzer.model import FusionNode
from analyzer.parse.fusion_tree import parse_fusion_tree, tensors, to_expr
from analyzer.parse.op_name import canonical, parse_op_name
from analyzer.schema import TensorInfo

F32 = "!mo.tensor<[64, 64], f32, gpu:0>"
SOFTMAX = f"""\
Fusion info:
  Prologue (operandIndices=[0])
      ├── View
      │   ├── mo.static.broadcast_to : (!mo.tensor<[], f32, gpu:0>) -> {F32}
      │   └── Elementwise
      │       ├── mo.gelu : ({F32}) -> {F32}
      │       ├── mo.mul : ({F32}, {F32}) -> {F32}
      │       └── mo.add : ({F32}, {F32}) -> {F32}
      └── mo.reduce.softmax : ({F32}) -> {F32}


Source Traceback:
"""
RMS = """\
# FusionInfo:
#   Epilogue (operandIndices=[0])
#       ├── Prologue (operandIndices=[0])
#       │   ├── mo.mul : (!mo.tensor<[64, 128], f32, gpu:0>, !mo.tensor<[64, 128], f32, gpu:0>) -> !mo.tensor<[64, 128], f32, gpu:0>
#       │   └── mo.reduce.mean : (!mo.tensor<[64, 128], f32, gpu:0>) -> !mo.tensor<[64, 1], f32, gpu:0>
#       └── View
#           ├── mo.static.broadcast_to : (!mo.tensor<[], f32, gpu:0>) -> !mo.tensor<[64, 1], f32, gpu:0>
#           └── Elementwise
#               ├── mo.add : (!mo.tensor<[64, 1], f32, gpu:0>, !mo.tensor<[64, 1], f32, gpu:0>) -> !mo.tensor<[64, 1], f32, gpu:0>
#               └── mo.rsqrt : (!mo.tensor<[64, 1], f32, gpu:0>) -> !mo.tensor<[64, 1], f32, gpu:0>
"""  # noqa: E501 - a tree as printed
SEQUENCE = """\
  Sequence
      ├── index.constant : () -> index
      ├── mgp.buffer.bulk_slice : (!mgp.buffer<<"gpu", 0>>, !mgp.device_context<<"gpu", 0>>, index) -> (!mgp.buffer<<"gpu", 0>>, !mgp.buffer<<"gpu", 0>>)
      ├── Epilogue (operandIndices=[0])
      │   ├── mo.matmul : (!mo.tensor<[64, 512], f32, gpu:0>, !mo.tensor<[512, 128], f32, gpu:0, {layout = #mo.layout<KN>}>) -> !mo.tensor<[64, 128], f32, gpu:0>
      │   └── mo.silu : (!mo.tensor<[64, 128], f32, gpu:0>) -> !mo.tensor<[64, 128], f32, gpu:0>
      └── mgp.tensor.create : (!mef.chain, !mgp.buffer<<"gpu", 0>>, !mgp.tensor_spec<64x128xf32>) -> !mgp.tensor<64x128xf32, <"gpu", 0>>
"""  # noqa: E501 - a tree as printed

PAIRS = [
    (
        SOFTMAX,
        (
            "Prologue(View(static.broadcast_to, Elementwise(gelu, mul, add)), "
            "reduce.softmax, operandIndices=[0])"
        ),
    ),
    (
        RMS,
        (
            "Epilogue(Prologue(mul, reduce.mean, operandIndices=[0]), "
            "View(static.broadcast_to, Elementwise(add, rsqrt)), operandIndices=[0])"
        ),
    ),
    (f"  mo.matmul : ({F32}, {F32}) -> {F32}", "matmul"),
    (f"  mo.matmul : ({F32}, {F32}) -> {F32}", "matmulmo.matmul"),
    (
        "  custom__nan_check_raise : (!mo.tensor<[1], si32>, !mo.chain) -> !mo.chain",
        "custom__nan_check_raise",
    ),
]


@pytest.mark.parametrize(("tree", "name"), PAIRS)
def test_a_tree_joins_the_op_name_of_its_kernel(tree: str, name: str) -> None:
    node = parse_fusion_tree(tree.splitlines())
    assert canonical(to_expr(node)) == canonical(parse_op_name(name))


def test_ops_carry_their_types_and_structure_nodes_their_children() -> None:
    node = parse_fusion_tree(SOFTMAX.splitlines())
    assert (node.name, node.attributes, node.inputs) == ("Prologue", (("operandIndices", "[0]"),), ())
    view, softmax = node.children
    assert [child.name for child in view.children] == ["mo.static.broadcast_to", "Elementwise"]
    full = TensorInfo(shape=[64, 64], dtype="f32", device="gpu:0")
    assert softmax.inputs == (full,)
    assert [out.role for out in softmax.outputs] == ["output"]
    assert view.children[0].inputs == (TensorInfo(shape=[], dtype="f32", device="gpu:0"),)


def test_types_that_are_no_tensors_are_left_out() -> None:
    node = parse_fusion_tree(SEQUENCE.splitlines())
    names = ["index.constant", "mgp.buffer.bulk_slice", "Epilogue", "mgp.tensor.create"]
    assert [child.name for child in node.children] == names
    assert node.children[1].inputs == node.children[1].outputs == ()
    assert node.children[3].inputs == (TensorInfo(shape=[64, 128], dtype="f32"),)


def test_tensors_are_the_distinct_operands_by_role() -> None:
    found = [(t.shape, t.role) for t in tensors(parse_fusion_tree(SOFTMAX.splitlines()))]
    assert found == [([], "input"), ([64, 64], "output"), ([64, 64], "input")]


def test_a_terminal_without_box_characters_and_a_stripped_margin_are_read() -> None:
    plain = parse_fusion_tree(["View", "|-- Elementwise", "|   `-- mo.mul", "`-- mo.add"])
    boxes = parse_fusion_tree(["View", "├── Elementwise", "│   └── mo.mul", "└── mo.add"])
    assert plain == boxes
    assert canonical(to_expr(plain)) == "View(Elementwise(mul), add)"


def test_the_tree_ends_at_a_blank_line() -> None:
    assert parse_fusion_tree(["", "  mo.mul", "", "Source Traceback:"]) == FusionNode(name="mo.mul")
    assert parse_fusion_tree(["# FusionInfo:", "#   mo.mul", "#", "# other"]) == FusionNode(name="mo.mul")


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["Fusion info:"],
        ["  a", "  b"],
        ["    a", "  b"],
        ["  Prologue (operandIndices=[0]"],
        ["  a : (f32"],
        ["  a : "],
        ["  a : f32"],
        ["  ├──"],
        ["  mo.mul [OP] LAUNCH"],
    ],
)
def test_what_is_no_tree_is_refused(lines: list[str]) -> None:
    with pytest.raises(GrammarError):
        parse_fusion_tree(lines)


def test_a_very_deep_tree_is_refused_and_not_a_recursion_error() -> None:
    with pytest.raises(GrammarError, match="at most"):
        parse_fusion_tree([" " * depth + "View" for depth in range(3000)])


TREES = st.recursive(
    st.sampled_from(["mo.mul", "mo.reduce.mean", "custom__x"]).map(lambda name: FusionNode(name=name)),
    lambda inner: st.builds(
        lambda name, children, indices: FusionNode(
            name=name, children=tuple(children), attributes=(("operandIndices", f"[{indices}]"),)
        ),
        st.sampled_from(["Epilogue", "Prologue", "View"]),
        st.lists(inner, min_size=1, max_size=3),
        st.integers(0, 9),
    ),
    max_leaves=12,
)


def _drawn(node: FusionNode, first: str, rest: str) -> list[str]:
    attributes = ", ".join(f"{key}={value}" for key, value in node.attributes)
    lines = [f"{first}{node.name}" + (f" ({attributes})" if attributes else "")]
    for index, child in enumerate(node.children):
        last = index == len(node.children) - 1
        branch, stem = ("└── ", "    ") if last else ("├── ", "│   ")
        lines += _drawn(child, rest + branch, rest + stem)
    return lines


@given(TREES, st.sampled_from(["", "# "]))
def test_any_tree_survives_drawing_and_reading(tree: FusionNode, comment: str) -> None:
    lines = [comment + line for line in _drawn(tree, "  ", "      ")]
    assert parse_fusion_tree(lines) == tree
    assert parse_op_name(canonical(to_expr(tree))).name == to_expr(tree).name.removeprefix("mo.")


@given(st.lists(st.text(alphabet="├──│ └#mo.a(=[0]):->f", max_size=15), max_size=4))
def test_any_lines_are_a_tree_or_refused(lines: list[str]) -> None:
    """No other exception escapes."""
    try:
        tensors(parse_fusion_tree(lines))
    except GrammarError:
        return

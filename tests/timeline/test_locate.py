"""Which op of the timeline a fault text talks about."""

from __future__ import annotations

import polars as pl
import pytest

from analyzer.model import FusionNode
from analyzer.timeline.build import build_timeline
from analyzer.timeline.locate import canonical_names, last_launch, names_of_kernel, symbol_of
from tests.oplog import loaded, mark_frame, pair

SOFTMAX = (
    "Prologue(View(static.broadcast_to, Elementwise(gelu, mul, add)), reduce.softmax, operandIndices=[0])"
)
GELU = "Epilogue(matmul, View(static.broadcast_to, Elementwise(gelu, mul, add)), operandIndices=[0])"
NAMES = pl.Series([SOFTMAX, GELU, "custom__strided_gather", "mul"])


def located(kernel: str | None, fusion: FusionNode | None = None) -> list[str]:
    return names_of_kernel(kernel=kernel, fusion=fusion, known=canonical_names(NAMES))


def test_symbol_joins_the_leaves() -> None:
    assert symbol_of(SOFTMAX) == "static_broadcast_to_gelu_mul_add_reduce_softmax"


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("__custom__strided_gather", "custom__strided_gather"),
        ("__custom__strided_gather_1", "custom__strided_gather"),
        ("__static_broadcast_to_gelu_mul_add_e8c805035e99b0a0", SOFTMAX),
        ("__matmul_static_broadcast_to_gelu_cec32e468ef8cbb1", GELU),
    ],
)
def test_kernel_symbol_names_its_op(kernel: str, name: str) -> None:
    """Hash and instance count fall off; long fusions are cut after a few leaves."""
    assert located(kernel) == [name]


def test_symbol_must_begin_with_whole_leaves() -> None:
    """``mu`` is no ``mul``."""
    assert located("__mu") == []
    assert located("__mul") == ["mul"]


def test_fusion_tree_decides_over_the_symbol() -> None:
    """The tree is the op's expression (observed.md 10)."""
    tree = FusionNode(name="mo.mul")
    assert located("__custom__strided_gather", tree) == ["mul"]


def test_unknown_kernel_names_nobody() -> None:
    assert located("__attention_0123456789abcdef") == []
    assert located(None) == []


def test_last_launch_before_the_report_is_taken() -> None:
    """A name recurs in every step."""
    with loaded([*pair("mul", 0), *pair("mul", 1), *pair("mul", 2)]) as one:
        ops = build_timeline(one.ops, mark_frame([])).ops
    found = last_launch(ops, ["mul"], 4)
    assert found is not None
    assert found["id"] == 1
    assert last_launch(ops, ["add"], 4) is None

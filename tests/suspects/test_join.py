"""Which ops of a window a kernel that the device names can belong to."""

from __future__ import annotations

import pytest

from analyzer.model import KernelState, OpDetail, OpFacts
from analyzer.schema import OpRef
from analyzer.suspects.join import join_kernel


def _ops(*names: str) -> list[OpFacts]:
    return [
        OpFacts(
            ref=OpRef(name=name, id=number, process="", input=0, line=10 + number),
            launch_line=10 + number,
            completion_line=None,
            run=0,
            expr=None,
            leaves=(name,),
            detail=OpDetail(),
        )
        for number, name in enumerate(names)
    ]


def _joined(kernel: str, *names: str) -> list[str]:
    return [op.ref.name for op in join_kernel(KernelState(kernel=kernel), _ops(*names)).ops]


def test_a_gather_kernel_of_pytorch_is_of_the_ops_that_look_up_rows() -> None:
    """``aten::embedding`` launches ``vectorized_gather_kernel``: no word of its name is in the kernel's."""
    names = ("aten::embedding", "aten::addmm", "aten::gelu", "aten::index_select")
    assert _joined("vectorized_gather_kernel", *names) == ["aten::embedding", "aten::index_select"]


@pytest.mark.parametrize("kernel", ["moe_align_kernel", "elementwise_kernel", "softmax_warp_forward"])
def test_a_kernel_of_other_work_is_not_given_to_a_lookup(kernel: str) -> None:
    assert _joined(kernel, "aten::embedding", "aten::addmm") == []


def test_a_gather_kernel_is_not_given_to_ops_of_another_framework() -> None:
    """Kernels are shared within PyTorch; what MAX launches has its own."""
    assert _joined("vectorized_gather_kernel", "mo.gather_nd_custom", "aten::addmm") == []


def test_a_name_that_stands_in_the_kernel_counts_before_its_family() -> None:
    assert _joined("index_select_kernel", "index_select", "aten::embedding") == ["index_select"]

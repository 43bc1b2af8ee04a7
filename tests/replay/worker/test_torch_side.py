"""Tensors as the worker makes them."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.worker.dtypes import encode
from analyzer.replay.worker.plan_file import Tensor


@pytest.fixture
def side() -> Any:
    pytest.importorskip("torch")
    from analyzer.replay.worker.torch_side import TorchSide

    return TorchSide(None, 0, lambda _text: None)


def _made(side: Any, shape: tuple[int, ...], stride: tuple[int, ...] | None, dtype: str = "int64") -> Any:
    count = 1
    for size in shape:
        count *= size
    return side.make(Tensor(shape, dtype, "cpu", stride=stride), encode(dtype, list(range(count))))


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        ((2, 3), None),
        ((2, 3), (3, 1)),
        ((2, 3), (1, 2)),
        ((2, 3), (8, 2)),
        ((4,), (5,)),
        ((2, 1, 3), (3, 77, 1)),
        ((), ()),
    ],
)
def test_values_are_where_the_strides_put_them(
    side: Any, shape: tuple[int, ...], stride: tuple[int, ...] | None
) -> None:
    made = _made(side, shape, stride)
    assert made.shape == shape
    assert stride is None or made.stride() == stride
    assert made.flatten().tolist() == list(range(made.numel()))


def test_an_empty_tensor_with_strides_is_made(side: Any) -> None:
    assert _made(side, (0, 3), (3, 1)).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["int64", "bfloat16", "bool"])
def test_a_broadcast_dimension_shares_its_memory(side: Any, dtype: str) -> None:
    made = _made(side, (3, 2), (0, 1), dtype)
    assert made.stride() == (0, 1)
    assert made[0].tolist() == made[2].tolist()
    assert made.untyped_storage().nbytes() == 2 * made.element_size()


def test_windows_that_overlap_are_made(side: Any) -> None:
    made = _made(side, (3, 2), (1, 1))
    assert (made.stride(), made[0, 1]) == ((1, 1), made[1, 0])


def test_no_inputs_share_memory(side: Any) -> None:
    first, second = (_made(side, (4,), None) for _ in range(2))
    first.add_(1)
    assert second.tolist() == [0, 1, 2, 3]


def test_unknown_types_and_devices_are_refused(side: Any) -> None:
    with pytest.raises(CannotRunError, match="float3"):
        side.make(Tensor((1,), "float3", "cpu"), b"\x00")
    with pytest.raises(CannotRunError, match="moon"):
        side.device("moon:1")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_a_nested_tensor_is_described_without_a_shape_that_it_does_not_have(side: Any, layout: str) -> None:
    import torch

    parts = [torch.ones(2, 3, dtype=torch.int64), torch.ones(4, 3, dtype=torch.int64)]
    nested = torch.nested.nested_tensor(parts, layout=getattr(torch, layout))
    assert side.describe([nested], with_values=True) == [
        {"shape": [2, None, None], "dtype": "int64", "device": "cpu"}
    ]
    assert side.fits(nested, Tensor((2, 3, 3), "int64", "cpu")) is False


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_the_hook_in_a_program_survives_a_nested_tensor(side: Any, layout: str) -> None:
    import torch

    from analyzer.replay.hooks.tensors import describe

    parts = [torch.ones(2, dtype=torch.int64), torch.ones(4, dtype=torch.int64)]
    nested = torch.nested.nested_tensor(parts, layout=getattr(torch, layout))
    assert [one["shape"] for one in describe([nested])] == [[2, None]]

"""Ops of torch's dispatcher: overloads, texts of a log, layouts, types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.replay.executors.call import Bound
from analyzer.replay.executors.torch_aten import _takes
from tests.replay.worker.jobs import Ran, indices, op, run_here, tensor

T = tensor


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


# call, arguments as a log prints them, shape and type of the first result.
CALLS: list[tuple[str, dict[str, Any], tuple[list[int], str]]] = [
    ("aten::sum", {"self": T(4, 3), "dim": "0,1", "keepdim": "True"}, ([1, 1], "float32")),
    ("aten::sum", {"self": T(4, 3), "dim": "1", "dtype": "float64"}, ([4], "float64")),
    ("aten::_to_copy", {"self": T(4), "dtype": "bfloat16", "device": "cuda:0"}, ([4], "bfloat16")),
    ("aten::empty", {"size": "2,3", "dtype": "int64", "layout": "torch.strided"}, ([2, 3], "int64")),
    ("aten::empty", {"size": "_"}, ([], "float32")),
    ("aten::clone", {"self": T(2, 3, 4, 5), "memory_format": "torch.channels_last"},
     ([2, 3, 4, 5], "float32")),
    ("aten::add", {"self": T(4), "other": T(4), "alpha": "2"}, ([4], "float32")),
    ("aten::add", {"self": T(4), "other": "2.5"}, ([4], "float32")),
    ("aten::pow", {"self": T(4), "exponent": 2}, ([4], "float32")),
    ("aten::div", {"self": T(4), "other": T(4), "rounding_mode": "floor"}, ([4], "float32")),
    ("aten::cat", {"tensors": (T(4, 3), T(2, 3)), "dim": "0"}, ([6, 3], "float32")),
    ("aten::index", {"self": T(4, 3), "indices": (None, indices(0, 2))}, ([4, 2], "float32")),
    ("aten::slice", {"self": T(8, 3), "dim": "0", "start": "2", "end": "None"}, ([6, 3], "float32")),
    ("aten::clamp", {"self": T(4), "min": "0", "max": "None"}, ([4], "float32")),
    ("aten::view", {"self": T(4, 3), "size": "-1"}, ([12], "float32")),
    ("aten::permute", {"arg0": T(4, 3), "arg1": "1,0"}, ([3, 4], "float32")),
    ("aten::linear", {"input": T(4, 3), "weight": T(5, 3), "bias": "None"}, ([4, 5], "float32")),
    ("aten::native_layer_norm", {"input": T(4, 3), "normalized_shape": [3], "weight": T(3), "bias": T(3),
                                 "eps": "1e-05"}, ([4, 3], "float32")),
    ("aten::topk", {"self": T(4, 9), "k": "2", "dim": "1"}, ([4, 2], "float32")),
    ("aten::zeros_like", {"self": T(4, dtype="float8_e4m3fn")}, ([4], "float8_e4m3fn")),
]  # fmt: skip


def test_texts_of_a_log_are_read_by_the_schema(tmp_path: Path) -> None:
    ops = [op(call, number, arguments=arguments) for number, (call, arguments, _) in enumerate(CALLS)]
    ran = run_here(tmp_path, ops)
    assert ran.code == 0, ran.output
    assert not [one.why for one in ran.journal.of("skipped")]
    done = [(one.outputs[0].shape, one.outputs[0].dtype) for one in ran.journal.of("done")]
    assert done == [expected for _, _, expected in CALLS]


def _one(folder: Path, call: str, **facts: Any) -> Ran:
    return run_here(folder, [op(call, **facts)])


def test_the_recorded_overload_is_called(tmp_path: Path) -> None:
    arguments = {"self": T(4, 3), "dim": "0", "start": "0", "length": "2"}
    assert _one(tmp_path, "aten::narrow", overload="default", arguments=arguments).code == 0
    ran = _one(tmp_path, "aten::narrow", overload="Tensor", arguments=arguments)
    assert ran.first("skipped").why == "'0' does not read as Tensor"


def test_an_output_that_only_has_a_type_is_made_and_written(tmp_path: Path) -> None:
    arguments = {"self": T(4, 3), "mat2": T(3, 5)}
    ran = _one(tmp_path, "aten::mm", overload="out", arguments=arguments, outputs=(T(4, 5),))
    assert ran.first("op").mutates is True
    assert ran.first("done").outputs[0].shape == [4, 5]
    ran = _one(tmp_path, "aten::mm", overload="out", arguments=arguments)
    assert "type the plan does not have" in (ran.first("skipped").why or "")


def test_a_value_that_the_log_cut_is_no_value(tmp_path: Path) -> None:
    cut = ",".join(["1000"] * 13)[:60]
    ran = _one(tmp_path, "aten::empty", arguments={"size": cut})
    assert ran.first("skipped").why == "the log cut the value of size"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"self": T(4), "dim": "0", "colour": "1"}, "no overload of aten::softmax takes self, dim, colour"),
        ({"self": T(4), "dim": "wide"}, "'wide' does not read as int"),
        ({"self": T(4)}, "no overload of aten::softmax takes self"),
    ],
)
def test_what_does_not_read_by_the_schema_is_skipped(
    tmp_path: Path, arguments: dict[str, Any], why: str
) -> None:
    assert _one(tmp_path, "aten::softmax", arguments=arguments).first("skipped").why == why


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "complex64"])
def test_floats_of_all_widths_are_multiplied(tmp_path: Path, dtype: str) -> None:
    ran = _one(tmp_path, "aten::mm", arguments={"self": T(8, 8, dtype=dtype), "mat2": T(8, 8, dtype=dtype)})
    assert ran.first("done").outputs[0].dtype == dtype


def test_a_tensor_lies_in_memory_as_recorded(tmp_path: Path) -> None:
    """``view`` refuses what ``reshape`` copies: the strides are there."""
    straight = {"self": T(4, 3, stride=(3, 1)), "size": "12"}
    turned = {"self": T(4, 3, stride=(1, 4)), "size": "12"}
    assert _one(tmp_path, "aten::view", arguments=straight).code == 0
    assert _one(tmp_path, "aten::view", arguments=turned).first("failed").why == "call"


def test_an_op_of_a_library_that_is_not_loaded_is_skipped(tmp_path: Path) -> None:
    ran = _one(tmp_path, "vllm::paged_attention_v1", arguments={"query": T(4)})
    assert ran.first("skipped").why == "this torch has no vllm::paged_attention_v1"


def test_dimensions_by_name_are_never_meant() -> None:
    """In torch 2.8 there is ``aten::sum.dim_DimnameList``, which takes the text of numbers as well."""
    torch = pytest.importorskip("torch")
    bound = [Bound("self", torch.zeros(2, 2), is_tensor=True), Bound("dim", text="0,1")]
    by_number = torch._C.parse_schema("aten::sum(Tensor self, int[1] dim) -> Tensor")

    class ByName:  # newer versions cannot parse such a schema
        arguments = by_number.arguments

        def __str__(self) -> str:
            return "aten::sum.dim_DimnameList(Tensor self, Dimname[1] dim) -> Tensor"

    assert _takes(by_number, bound)
    assert not _takes(ByName(), bound)


def test_an_optional_argument_that_the_log_leaves_out_is_none(tmp_path: Path) -> None:
    """A record has no text for what is None: the bias of a convolution, the weight of a norm."""
    convolution = {
        "input": T(1, 3, 8, 8), "weight": T(4, 3, 3, 3), "stride": "1,1", "padding": "0,0", "dilation": "1,1",
        "transposed": "False", "output_padding": "0,0", "groups": "1",
    }  # fmt: skip
    ran = _one(tmp_path, "aten::convolution", arguments=convolution)
    assert ran.first("done").outputs[0].shape == [1, 4, 6, 6]
    norm = {"input": T(2, 6), "normalized_shape": "6", "eps": "1e-05"}
    ran = _one(tmp_path, "aten::native_layer_norm", arguments=norm)
    assert ran.first("done").outputs[0].shape == [2, 6]


def test_a_library_that_does_not_load_is_no_misfit_of_the_op(tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    ran = run_here(tmp_path, [op("aten::relu", arguments={"self": T(2)})], custom_extensions=(str(broken),))
    assert ran.first("skipped").why is not None
    assert f"--custom-extensions {broken}: cannot be loaded" in (ran.first("skipped").why or "")

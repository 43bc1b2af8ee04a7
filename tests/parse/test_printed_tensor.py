"""Bodies of printed tensors, as PyTorch 2.11 and 2.13 print them."""

from __future__ import annotations

from math import isnan

import pytest

from analyzer.parse.printed_tensor import is_floating, is_integer, read_tensor

IDS = """\
  29  112  879
 629  215  464
[ CPULongType{2,3} ]
Number of elements: 6
Dtype: long int
Mean value: 482.969
Min value: 29
Max value: 879
Device: cpu
Size: [2, 3]
Stride: [3, 1]
Layout: Strided"""


def test_cpp_tensor_is_read_whole() -> None:
    tensor = read_tensor("arg1_1", 7, IDS.split("\n"))
    assert list(tensor.values or ()) == [29, 112, 879, 629, 215, 464]
    assert (tensor.dtype, tensor.device, tensor.shape, tensor.stride) == ("int64", "cpu", (2, 3), (3, 1))
    assert (tensor.elements, tensor.min, tensor.max, tensor.mean) == (6, 29, 879, 482.969)


def test_scaled_sections_are_multiplied_out() -> None:
    text = "(1,.,.) = \n1e-31 *\n  0.0069\n   1.7181\n\n(2,.,.) = \n 0.5\n  2.0\n[ CPUFloatType{2,2,1} ]"
    tensor = read_tensor("buf5", 1, [*text.split("\n"), "Number of elements: 4", "Dtype: float32"])
    assert tensor.values == pytest.approx((0.0069e-31, 1.7181e-31, 0.5, 2.0))


def test_broken_columns_are_read_on() -> None:
    text = (
        "Columns 1 to 2  790    82\n  168   707\n\nColumns 3 to 4  546  5000\n  174  1\n[ CPULongType{2,4} ]"
    )
    tensor = read_tensor("arg1_1", 1, [*text.split("\n"), "Number of elements: 8", "Dtype: long int"])
    assert tensor.values is not None
    assert sorted(tensor.values) == [1, 82, 168, 174, 546, 707, 790, 5000]


PYTHON = """\
Parameter containing:
tensor([[889,  22],
        [925, 593]], device='cuda:0')
Number of elements:  4
Size:  torch.Size([2, 2])
Dtype:  607.25
Mean:  607.25
Min:  22.0
Max:  925.0
Std:  327.7"""


def test_python_tensor_tells_its_dtype_by_its_values() -> None:
    tensor = read_tensor("arg1_1", 1, PYTHON.split("\n"))
    assert (tensor.dtype, tensor.values, tensor.shape) == ("int64", (889.0, 22.0, 925.0, 593.0), (2, 2))
    assert (tensor.min, tensor.max, tensor.mean) == (22, 925, 607.25)


def test_python_dtype_of_newer_pytorch_is_a_dtype() -> None:
    tensor = read_tensor("buf0", 1, ["Number of elements:  4096", "Dtype:  torch.bfloat16", "Mean:  0.5"])
    assert (tensor.dtype, tensor.mean) == ("bfloat16", 0.5)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("tensor([0.5000, 1.0000], device='cuda:0')", "float32"),
        ("tensor([1, 2], device='cuda:0', dtype=torch.int32)", "int32"),
        ("tensor([True, False])", "bool"),
        ("tensor([nan, inf])", "float32"),
        ("tensor([0., 1.],\n       requires_grad=True)", "float32"),
    ],
)
def test_dtypes_that_python_leaves_out_are_told_by_the_numbers(text: str, dtype: str) -> None:
    tensor = read_tensor("x", 1, [*text.split("\n"), "Number of elements:  2"])
    assert tensor.dtype == dtype
    assert tensor.values is not None


def test_negative_nan_of_cpp_is_nan() -> None:
    tensor = read_tensor("buf", 1, ["Number of elements: 100", "Min value: -nan", "Max value: -inf"])
    assert tensor.min is not None
    assert isnan(tensor.min)
    assert tensor.max == float("-inf")


def test_tensor_without_elements_has_no_values() -> None:
    text = ["[ CPUFloatType{0,3} ]", "Number of elements: 0", "Dtype: float32", "Device: cpu", "Size: [0, 3]"]
    tensor = read_tensor("arg7_1", 1, text)
    assert (tensor.elements, tensor.min, tensor.shape, tensor.values) == (0, None, (0, 3), ())


def test_complex_tensor_has_no_least_value() -> None:
    text = ["Number of elements: 2", "Dtype: c10::complex<float>", "Mean value: (-0.78,-0.32)", "Device: cpu"]
    tensor = read_tensor("arg5_1", 1, text)
    assert (tensor.dtype, tensor.mean, tensor.min) == ("complex64", None, None)


def test_next_tensor_and_other_writers_are_left_alone() -> None:
    tensor = read_tensor(
        "a", 1, ["Number of elements: 100", "step 3 done", "Min value: 1", "Number of elements: 7"]
    )
    assert (tensor.elements, tensor.min) == (100, 1)


def test_value_cut_by_a_traceback_is_not_read() -> None:
    tensor = read_tensor(
        "buf8", 1, ["Number of elements: 4096", "Mean value: Traceback (most recent call last):"]
    )
    assert (tensor.elements, tensor.mean, tensor.max) == (4096, None, None)


def test_kinds_of_dtypes() -> None:
    assert [is_integer(name) for name in ("int64", "uint8", "bool", "float32", None)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [is_floating(name) for name in ("bfloat16", "float8_e4m3fn", "int32", None)] == [
        True,
        True,
        False,
        False,
    ]

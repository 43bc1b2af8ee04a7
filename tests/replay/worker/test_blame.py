"""Texts that real programs raised, and whether they are the fault or a call that does not fit."""

from __future__ import annotations

import pytest

from analyzer.replay.worker.blame import is_call_error
from analyzer.replay.worker.plan_file import Op


def _op(call: str, executor: str = "torch") -> Op:
    return Op(number=0, name=call, executor=executor, call=call)


ATEN, USER, GRAPH = _op("aten::x"), _op("run", "user"), _op("custom::x", "max")


@pytest.mark.parametrize("op", [ATEN, USER, GRAPH, _op("mo.gather"), _op("vllm::x")])
@pytest.mark.parametrize(
    "error",
    [
        IndexError("index out of range in self"),
        RuntimeError("index 9 is out of bounds for dimension 0 with size 4"),
        RuntimeError("Index 1 of input takes value 9 which is not in the valid range [0, 4)"),
        IndexError("INDICES element is out of DATA bounds, id=11 axis_dim=4"),
        RuntimeError("CUDA error: device-side assert triggered"),
        RuntimeError("CUDA error: an illegal memory access was encountered\nexpected size 3 got 4"),
        RuntimeError(
            "CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
        ),
        RuntimeError("HIP error: the operation cannot be performed in the present state"),
        RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. can't allocate memory: you tried 4 bytes"
        ),
        RuntimeError("CUDA out of memory. Tried to allocate 9.00 GiB"),
        MemoryError(),
        ValueError('An error occurred in kernel named "k":\nx: table size mismatch: expected 64 got 8'),
        ValueError("NaN/Inf detected in 'x' (!mo.tensor<[64], f32>): 64 NaN, 0 Inf"),
        RuntimeError("Class values must be smaller than num_classes."),
        RuntimeError("probability tensor contains either `inf`, `nan` or element < 0"),
        AssertionError("Expected x.shape == 3 but got 4"),
        ZeroDivisionError("division by zero"),
    ],
)
def test_faults(op: Op, error: Exception) -> None:
    assert not is_call_error(op, error)


@pytest.mark.parametrize("op", [ATEN, USER, GRAPH, _op("mo.gather"), _op("vllm::x")])
@pytest.mark.parametrize(
    "error",
    [
        TypeError("f() missing 1 required positional argument: 'x'"),
        NotImplementedError("Could not run 'aten::x' with arguments from the 'CPU' backend."),
        NotImplementedError("\"mm\" not implemented for 'Bool'"),
        RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Int'"),
        RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x3 and 4x3)"),
        RuntimeError(
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0"
        ),
        RuntimeError("shape '[5]' is invalid for input of size 12"),
        RuntimeError("expected scalar type Float but found BFloat16"),
        RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0!"
        ),
        IndexError("Dimension out of range (expected to be in range of [-2, 1], but got 7)"),
        IndexError("too many indices for tensor of dimension 2 (got 3)"),
        IndexError("tensors used as indices must be long, int, byte or bool tensors"),
        IndexError(
            "The shape of the mask [5] at index 0 does not match the shape of the indexed tensor [4, 3]"
        ),
        IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"),
        AssertionError("Torch not compiled with CUDA enabled"),
        RuntimeError("Trying to create tensor with negative dimension -1: [-1]"),
    ],
)
def test_calls_that_do_not_fit(op: Op, error: Exception) -> None:
    assert is_call_error(op, error)


def test_an_unknown_text_is_believed_of_user_code_alone() -> None:
    error = RuntimeError("page 9 is not mine")
    assert is_call_error(ATEN, error)
    assert not is_call_error(USER, error)
    assert not is_call_error(GRAPH, error)


def test_the_own_text_of_an_assertion_op_is_a_fault() -> None:
    assert not is_call_error(_op("aten::_assert_async"), RuntimeError("boo: size"))

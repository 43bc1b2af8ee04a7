"""TensorRT and TensorRT-LLM (formats.md 3.13)."""

# ruff: noqa: E501  (a log line is as long as it is)

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord
from analyzer.witnesses.trtllm import WITNESS
from tests.witnesses.conftest import Reader

FAULT = "Error Code 1: Cuda Runtime (an illegal memory access was encountered)"


@pytest.mark.parametrize(
    ("text", "kind", "code", "teardown"),
    [
        (f"1: [runner.cpp::execute::718] {FAULT}", "illegal_address", 700, False),
        (f"IExecutionContext::enqueueV3: {FAULT}", "illegal_address", 700, False),
        (f"[checkMacros.cpp::catchCudaError::212] {FAULT}", "illegal_address", 700, False),
        (f"[defaultAllocator.cpp::deallocateAsync::64] {FAULT}", "illegal_address", 700, True),
        (
            "IExecutionContext::enqueueV3: Error Code 1: CuTensor (Internal cuTensor permutate execute failed)",
            "library_status",
            None,
            False,
        ),
        (
            "1: [wrapper.cpp::plainGemm::456] Error Code 1: Cublas (CUBLAS_STATUS_EXECUTION_FAILED)",
            "library_status",
            None,
            False,
        ),
        (
            "2: [virtualMemoryBuffer.cpp::resizePhysical::140] Error Code 2: OutOfMemory (Requested size was 12884901888 bytes.)",
            "out_of_memory",
            None,
            False,
        ),
    ],
)
def test_with_a_file_or_with_the_interface_that_was_called(
    read: Reader, text: str, kind: str, code: int | None, teardown: bool
) -> None:
    """TensorRT 10 dropped the number in front and names interfaces."""
    reading = read(WITNESS, f"[05/21/2026-14:16:54] [TRT] [E] {text}")
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.code, fault.teardown) == (kind, code, teardown)
    assert not reading.losses

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


CHECK = "what():  [TensorRT-LLM][ERROR] Assertion failed: "


@pytest.mark.parametrize(
    ("text", "kind", "name", "line"),
    [
        (
            f"{CHECK}Failed: MPI error /src/common/mpiUtils.cpp:211 '6' (/src/common/mpiUtils.cpp:211)",
            "library_status",
            "MPI error 6",
            211,
        ),
        (f"{CHECK}d == a + length (/app/plugins/gemmPlugin.cpp:156)", "unknown", None, 156),
        (f"{CHECK}FP8 FMHA cannot be enabled except on Ada or Hopper", "unknown", None, None),
    ],
)
def test_a_check_of_its_own_code_that_ended_the_program(
    read: Reader, text: str, kind: str, name: str | None, line: int | None
) -> None:
    reading = read(WITNESS, f"  {text}\n1       0x7fb4aebbeb71 tensorrt_llm::common::throwRuntimeError + 82")
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.name, fault.last_line) == (kind, name, 2)
    assert (fault.location.line if fault.location else None) == line
    assert not reading.losses


def test_a_check_that_refused_a_request_ended_nothing(read: Reader) -> None:
    text = "[E] submit request failed: [TensorRT-LLM][ERROR] Assertion failed: mMaxNewTokens > 0"
    assert not read(WITNESS, text).records

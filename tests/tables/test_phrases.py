"""Names and sentences of GPU runtimes, wherever they stand in a line."""

from __future__ import annotations

import pytest

from analyzer.tables.codes import CODES
from analyzer.tables.failure_words import kind_of_words
from analyzer.tables.phrases import find_phrase, gates


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("check failed: CUSOLVER_STATUS_EXECUTION_FAILED", "library_status"),
        ("cufftExecC2C: CUFFT_ALLOC_FAILED", "out_of_memory"),
        ("miopenStatusInternalError at conv.cpp:12", "library_status"),
        ("rocblas_status_memory_error", "out_of_memory"),
        ("clEnqueueNDRangeKernel returned CL_OUT_OF_RESOURCES", "library_status"),
        ("vkQueueSubmit: VK_ERROR_DEVICE_LOST", "device_lost"),
        ("UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "out_of_memory"),
        ("hipErrorLaunchFailure", "launch_failure"),
        ("code=77 text: an illegal memory access was encountered", "illegal_address"),
        ("CUDA error: out of memory", "out_of_memory"),
    ],
)
def test_phrase_tells_the_kind(text: str, kind: str) -> None:
    found = find_phrase(text)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    "text",
    [
        *("CUBLAS_STATUS_SUCCESS", "cudaErrorNotReady", "cudaError_t status", "out of memory"),
        *("invalid argument", "CUFFT_FORWARD", "CL_DEVICE_NAME", "CUDNN_STATUS_SUCCESS (0)"),
    ],
)
def test_word_of_everybody_and_success_are_no_phrase(text: str) -> None:
    assert find_phrase(text) is None


def test_every_name_of_a_code_passes_the_gate() -> None:
    literals = gates()
    names = [n for row in CODES for n in (row.names.runtime, row.names.driver, row.names.hip) if n]
    assert all(any(literal in name for literal in literals) for name in names)


def test_words_that_tell_nothing_are_unknown() -> None:
    assert kind_of_words("something went wrong") == "unknown"
    assert kind_of_words("std::bad_alloc") == "out_of_memory"

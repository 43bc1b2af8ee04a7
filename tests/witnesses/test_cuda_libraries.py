"""Statuses of the libraries beside the runtime (formats.md 3.5)."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.model import FaultRecord
from analyzer.witnesses import c10
from analyzer.witnesses.cuda_libraries import WITNESS

Read = Any
TRACE = ["Traceback (most recent call last):", '  File "/srv/app/a.py", line 7, in f', "    y = self.proj(x)"]


@pytest.mark.parametrize(
    ("line", "kind", "site", "function"),
    [
        (
            "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, m)`",
            "library_status",
            "sync",
            "cublasGemmEx",
        ),
        (
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "out_of_memory",
            "host",
            "cublasCreate",
        ),
        (
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            "out_of_memory",
            "host",
            "cublasCreate",
        ),
        (
            "CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle, m)`",
            "invalid_argument",
            "launch",
            "cublasSgemm",
        ),
        (
            "CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasGemmEx( handle)`",
            "library_status",
            "sync",
            "hipblasGemmEx",
        ),
        (
            "CUDA error: insufficient resources when calling `cusparseCreate(handle)`",
            "out_of_memory",
            "host",
            "cusparseCreate",
        ),
        (
            "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a",
            "invalid_argument",
            "launch",
            None,
        ),
        ("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED_CUDART", "library_status", "sync", None),
        ("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "out_of_memory", "host", None),
        (
            "cuDNN Frontend error: [cudnn_frontend] Error: No execution plans support the graph.",
            "invalid_argument",
            "host",
            None,
        ),
        (
            "cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED, when calling `cusolverDnX( handle)`. This",
            "library_status",
            "sync",
            "cusolverDnX",
        ),
        ("cuFFT error: CUFFT_INTERNAL_ERROR", "library_status", "sync", None),
        ("CUDA NVRTC error: NVRTC_ERROR_COMPILATION", "no_kernel_image", "host", None),
    ],
)
def test_what_a_status_means(read: Read, line: str, kind: str, site: str, function: str | None) -> None:
    reading = read(WITNESS, [*TRACE, f"RuntimeError: {line}"])
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.site, fault.entry_point) == (kind, site, function)
    assert fault.code is None
    assert not reading.losses


def test_not_initialised_after_an_error_is_a_lost_context(read: Read) -> None:
    lines = [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
    ]
    (fault,) = read(WITNESS, lines).records
    assert isinstance(fault, FaultRecord)
    assert fault.kind == "library_status"


def test_one_text_is_one_fault_of_one_witness(read: Read) -> None:
    """Both gates let the line pass; exactly one of the two reads it."""
    for line in (
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle)`",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ):
        assert len([*read(WITNESS, [line]).records, *read(c10.WITNESS, [line]).records]) == 1


def test_call_cut_off_at_the_end_of_a_log(read: Read) -> None:
    line = "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa"
    (fault,) = read(WITNESS, [line]).records
    assert isinstance(fault, FaultRecord)
    assert fault.name == "CUBLAS_STATUS_EXECUTION_FAILED"


def test_source_line_of_a_traceback_is_no_error(read: Read) -> None:
    assert not read(WITNESS, ['    raise RuntimeError(f"cuDNN error: {status}")']).records

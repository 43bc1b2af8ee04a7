"""Errors of PyTorch's CUDA checks (formats.md 3.1, observed.md 21-22)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from analyzer.grammar import data_path
from analyzer.model import FaultRecord, ModeRecord, Reading
from analyzer.witnesses.c10 import WITNESS

Read = Any
HEAD = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
SEARCH = "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/x.html for more information."
ASYNC = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
    "might be incorrect."
)
DEBUG = "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"
TAIL = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
TRACE = ["Traceback (most recent call last):", '  File "/srv/app/a.py", line 7, in f', "    y = op(x)"]


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def blocking(reading: Reading) -> list[object]:
    return [r.value for r in reading.records if isinstance(r, ModeRecord) and r.name == "launch_blocking"]


def sample(name: str) -> str:
    return Path(data_path("sample_logs") / name / "input.log").read_text(encoding="utf-8")


def test_late_report_has_the_sentence(read: Read) -> None:
    reading = read(WITNESS, [*TRACE, HEAD, SEARCH, ASYNC, DEBUG, TAIL])
    (fault,) = faults(reading)
    assert (fault.kind, fault.code, fault.async_hint, fault.site) == ("illegal_address", 700, True, "launch")
    assert (fault.line, fault.block_first, fault.last_line) == (4, 1, 8)
    assert fault.python is not None
    assert fault.python.line == 7
    assert blocking(reading) == [False]
    assert reading.parsed == [4]
    assert reading.continuation == [1, 2, 3, 5, 6, 7, 8]


def test_missing_sentence_of_a_whole_text_shows_launch_blocking(read: Read) -> None:
    assert blocking(read(WITNESS, [*TRACE, HEAD, SEARCH, TAIL])) == [True]


def test_cut_text_says_nothing_about_launch_blocking(read: Read) -> None:
    """A log that ends behind the name of the error never had room for the sentence."""
    for lines in ([HEAD], [HEAD, SEARCH]):
        reading = read(WITNESS, lines)
        assert faults(reading)[0].async_hint is None
        assert blocking(reading) == []


def test_newest_text_without_the_sentence_says_nothing(read: Read) -> None:
    """It prints another sentence for the codes that are not device faults (formats.md 3.1)."""
    more = "For more detailed error information, run with CUDA_LOG_FILE=stderr"
    reading = read(
        WITNESS,
        ["RuntimeError: CUDA error: operation not supported on global/shared address space", more, TAIL],
    )
    assert faults(reading)[0].async_hint is None
    assert blocking(reading) == []


def test_error_of_the_call_itself_says_nothing_about_launch_blocking(read: Read) -> None:
    assert blocking(read(WITNESS, ["RuntimeError: CUDA error: invalid argument", TAIL])) == []


@pytest.mark.parametrize(
    ("line", "kind", "code", "name", "vendor"),
    [
        ("RuntimeError: CUDA error: invalid argument", "invalid_argument", 1, None, "nvidia"),
        ("AcceleratorError: CUDA error: misaligned address", "misaligned_address", 716, None, "nvidia"),
        (
            "torch._dynamo.exc.InternalTorchDynamoError: AcceleratorError: CUDA error: misaligned address",
            "misaligned_address",
            716,
            None,
            "nvidia",
        ),
        (
            "torch.distributed.DistBackendError: CUDA error: unspecified launch failure",
            "launch_failure",
            719,
            None,
            "nvidia",
        ),
        ("RuntimeError: CUDA driver error: invalid argument", "invalid_argument", 1, None, "nvidia"),
        ("RuntimeError: HIP error: unspecified launch failure", "launch_failure", 719, None, "amd"),
        (
            f"x: CUDA error: out of memory{SEARCH}".replace("IllegalAddress", "MemoryAllocation"),
            "out_of_memory",
            2,
            "cudaErrorMemoryAllocation",
            "nvidia",
        ),
        (
            "RuntimeError: cuda runtime error (59) : device-side assert triggered at /p/x.cu:12",
            "device_assert",
            710,
            None,
            "nvidia",
        ),
        (
            "THCudaCheck FAIL file=/p/x.cu line=12 error=77 : an illegal memory access was encountered",
            "illegal_address",
            700,
            None,
            "nvidia",
        ),
        (
            "RuntimeError('CUDA error: an illegal memory access was encountered\\nSearch for')",
            "illegal_address",
            700,
            None,
            "nvidia",
        ),
        ("RuntimeError: CUDA error: an error of tomorrow", "unknown", None, None, "nvidia"),
    ],
)
def test_versions_of_the_text(
    read: Read, line: str, kind: str, code: int | None, name: str | None, vendor: str
) -> None:
    reading = read(WITNESS, [line])
    (fault,) = faults(reading)
    assert (fault.kind, fault.code, fault.name, fault.vendor) == (kind, code, name, vendor)
    assert not reading.losses


def test_vendor_is_told_by_the_name_and_not_by_the_word(read: Read) -> None:
    (fault,) = faults(read(WITNESS, [HEAD, SEARCH.replace("cudaError", "hipError"), ASYNC]))
    assert fault.vendor == "amd"


@pytest.mark.parametrize(
    "line",
    [
        "CUDA error: Could not synchronize CUDA stream: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access",
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle)`",
        "RuntimeError: CUDA error: internal error when calling `cusparseSpMM( handle)`",
        '    raise RuntimeError(f"CUDA error: {error_message}")',
        "[E219 12:14:43.3 ProcessGroupNCCL.cpp:1595] watchdog thread terminated: CUDA error: unknown error",
    ],
)
def test_text_of_other_witnesses_is_left_to_them(read: Read, line: str) -> None:
    reading = read(WITNESS, [line])
    assert not reading.records
    assert not reading.parsed


def test_ggml_text_is_left_to_its_witness(read: Read) -> None:
    lines = [
        "CUDA error: an illegal memory access was encountered",
        "  current device: 0, in function f at x.cu:1",
    ]
    assert not read(WITNESS, lines).records


def test_terminate_and_its_what_are_one_fault(read: Read) -> None:
    reading = read(WITNESS, sample("c10/terminate_only"))
    (fault,) = faults(reading)
    assert (fault.line, fault.block_first, fault.site) == (3, 2, "sync")
    assert fault.kernel is None  # only the checker raised it


def test_terminate_with_another_error_is_a_host_abort(read: Read) -> None:
    lines = [
        "terminate called after throwing an instance of 'std::runtime_error'",
        "  what():  no such model",
    ]
    (fault,) = faults(read(WITNESS, lines))
    assert (fault.kind, fault.last_line) == ("host_abort", 2)
    assert fault.text.endswith(": no such model")


def test_useful_cpp_frame_is_the_first_that_does_not_check(read: Read) -> None:
    (fault,) = faults(read(WITNESS, sample("c10/triton_oob_cpp")))
    assert (fault.kernel, fault.entry_point) == ("launch_reduce_kernel", "aten::argmax")
    assert fault.location is not None
    assert fault.location.line == 931


def test_warning_of_a_destructor_is_teardown(read: Read) -> None:
    line = "[W CUDAGuardImpl.h:115] Warning: CUDA warning: unspecified launch failure (function destroyEvent)"
    (fault,) = faults(read(WITNESS, [line]))
    assert (fault.teardown, fault.code) == (True, 719)


def test_marks_tell_which_call_of_a_line_was_running(read: Read) -> None:
    """``print(out.argmax(-1).cpu())``: the marks stand under argmax, so it was no copy."""
    text = sample("c10/triton_oob")
    assert faults(read(WITNESS, text))[0].site == "launch"
    without = "\n".join(line for line in text.splitlines() if "^^" not in line)
    assert faults(read(WITNESS, without))[0].site == "sync"


def test_one_line_with_the_whole_text(read: Read) -> None:
    (fault,) = faults(read(WITNESS, [f"{HEAD} {SEARCH} {ASYNC} {DEBUG} {TAIL}"]))
    assert (fault.name, fault.async_hint) == ("cudaErrorIllegalAddress", True)


def test_other_writers_between_the_lines(read: Read) -> None:
    lines = [*TRACE, "step 4", HEAD, "INFO: 1 request", SEARCH, "step 5", ASYNC, DEBUG, TAIL]
    (fault,) = faults(read(WITNESS, lines))
    assert (fault.name, fault.async_hint, fault.python is not None) == ("cudaErrorIllegalAddress", True, True)


@pytest.mark.parametrize("name", ["c10/triton_oob_cpp", "triton/oob_blocking", "c10/vllm_engine_core"])
def test_log_cut_anywhere_never_breaks(read: Read, name: str) -> None:
    text = sample(name)
    for end in range(0, len(text), 7):
        read(WITNESS, text[:end])


def test_a_dead_context_repeats_itself_cheaply(read: Read) -> None:
    began = time.process_time()
    reading = read(WITNESS, [HEAD] * 100_000)
    assert sum(fault.count for fault in faults(reading)) == 100_000
    assert len(faults(reading)) < 50
    assert len(reading.parsed) == 100_000
    assert time.process_time() - began < 10


def test_error_of_a_worker_that_another_process_quotes_is_relayed(read: Read) -> None:
    line = "RuntimeError: Worker failed with error 'CUDA error: misaligned address', please check"
    (fault,) = faults(read(WITNESS, [line]))
    assert (fault.relayed, fault.code) == (True, 716)


def test_record_of_several_lines_with_a_tag_on_each(read: Read) -> None:
    """TGI prints the whole standard error output of a shard as one JSON record."""
    lines = ["[rank1]: " + text for text in [*TRACE, HEAD, SEARCH, ASYNC]]
    (fault,) = faults(read(WITNESS, ["\n".join(["Shard complete standard error output:", "", *lines])]))
    assert fault.python is not None
    assert (fault.python.line, fault.async_hint) == (7, True)


def test_a_driver_that_does_not_fit_blames_no_launch(read: Read) -> None:
    """The first call of any kind returns it."""
    text = [
        "Traceback (most recent call last):",
        '  File "/srv/app/serve.py", line 8, in <module>',
        '    x = torch.zeros(1, device="cuda")',
        "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
    ]
    fault = next(one for one in read(WITNESS, text).records if isinstance(one, FaultRecord))
    assert (fault.kind, fault.code, fault.site) == ("configuration", 35, "host")

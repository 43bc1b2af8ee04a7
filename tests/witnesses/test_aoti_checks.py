"""Checks of AOTInductor's runner and shim, and of host code that Inductor makes (formats.md 3.8)."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord, Reading
from analyzer.witnesses.aoti_checks import WITNESS
from tests.witnesses.conftest import Reader

FROM = "Exception raised from cpp_fused_embedding_0 at /srv/cf/cfq.kernel.cpp:25 (most recent call first):"
TRACE = [
    "Traceback (most recent call last):",
    '  File "/srv/app/serve.py", line 34, in <module>',
    "    out = f(*args)",
]
RUN_FUNC = (
    "RuntimeError: run_func_( container_handle_, input_handles.data(), stream_handle) API call failed at "
    "../torch/csrc/inductor/aoti_runner/model_container_runner.cpp, line 107"
)


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


@pytest.mark.parametrize(
    "message",
    [
        "input_handles[0]: unmatched dtype, expected: 4(at::kLong), but got: 3",
        "input_handles[1]: unmatched dtype, expected: 6(at::kFloat), but got: 7(at::kDouble)",
        "input_handles[0]: unmatched dim value at 1, expected: 16, but got: 8",
        "input_handles[2]: dim value is too small at 0, expected it to be >= 2, but got: 1",
        "input_handles[2]: dim value is too large at 0, expected to be <= 1024, but got: 2048",
        "input_handles[0]: unmatched stride value at 0, expected: 16, but got: 1",
        "input_handles[0]: unmatched device type, expected: 00(cpu), but got: 1",
        "input_handles[0]: unmatched device type, expected: 0(cpu), but got: 1(cuda)",
    ],
)
def test_input_check_is_one_fault_with_the_python_line(read: Reader, message: str) -> None:
    reading = read(WITNESS, [f"Error: {message}", "", *TRACE, f"RuntimeError: {message}"])
    (fault,) = faults(reading)
    assert (fault.kind, fault.line, fault.text, fault.site) == ("input_check", 1, message, "host")
    assert fault.python is not None
    assert fault.python.line == 34
    assert reading.losses == []


def test_message_above_the_runner_error_is_the_fault(read: Reader) -> None:
    reading = read(WITNESS, ["Error: sizes differ", *TRACE, RUN_FUNC])
    (fault,) = faults(reading)
    assert (fault.line, fault.kind, fault.relayed) == (1, "unknown", False)
    assert fault.text.startswith("sizes differ (run_func_ API call failed at ../torch/")


def test_input_check_above_the_runner_error_is_not_told_twice(read: Reader) -> None:
    message = "input_handles[0]: unmatched dim value at 1, expected: 16, but got: 8"
    (fault,) = faults(read(WITNESS, [f"Error: {message}", *TRACE, RUN_FUNC]))
    assert (fault.kind, fault.line) == ("input_check", 1)


def test_runner_error_about_cuda_only_hands_it_on(read: Reader) -> None:
    text = "CUDA driver error: an illegal memory access was encountered"
    (fault,) = faults(read(WITNESS, [f"Error: {text}", RUN_FUNC]))
    assert fault.relayed


def test_runner_error_alone_is_still_a_fault(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, [*TRACE, RUN_FUNC]))
    assert fault.kind == "unknown"


def test_nan_check_of_the_shim_names_the_buffer(read: Reader) -> None:
    text = "[E1130 01:57:22.489508337 shim_common.cpp:1095] Exception in aoti_torch: At least one NaN in buf7"
    (fault,) = faults(read(WITNESS, [text]))
    assert (fault.kind, fault.label) == ("nan", "buf7")


def test_exception_of_the_shim_is_an_error_of_host_code(read: Reader) -> None:
    (fault,) = faults(
        read(WITNESS, ["Exception in aoti_torch: Expected all tensors to be on the same device"])
    )
    assert fault.kind == "kernel_raised"


def test_bounds_check_takes_the_kernel_from_the_thrower(read: Reader) -> None:
    lines = [
        "terminate called after throwing an instance of 'c10::Error'",
        "  what():  index out of bounds: 0 <= tmp2 < 1000L",
        FROM,
    ]
    (fault,) = faults(read(WITNESS, lines))
    assert (fault.kind, fault.kernel, fault.label) == ("input_check", "cpp_fused_embedding_0", "1000")


def test_bounds_check_takes_the_kernel_from_its_text(read: Reader) -> None:
    text = "  what():  cpp_fused_embedding_0, /srv/c5y.main.cpp:208, index out of bounds: 0 <= tmp2 < 1000L"
    assert faults(read(WITNESS, [text]))[0].kernel == "cpp_fused_embedding_0"
    unnamed = (
        "  what():  kernel, /var/cache/inductor/76/c76.main.cpp:24, index out of bounds: 0 <= tmp2 < 1000L"
    )
    assert faults(read(WITNESS, [unnamed]))[0].kernel is None


def test_assert_of_the_device_belongs_to_another_witness(read: Reader) -> None:
    text = (
        "x.py:3: unknown: block: [0,0,0], thread: [6,0,0] Assertion `index out of bounds: 0 <= t < 9` failed."
    )
    reading = read(WITNESS, [text])
    assert (reading.records, reading.losses) == ([], [])


def test_check_in_another_form_is_a_loss(read: Reader) -> None:
    reading = read(WITNESS, ["Error: input_handles[0]: something new, expected: 3"])
    assert [loss.line for loss in reading.losses] == [1]


def test_bounds_check_of_the_wrapper_is_an_exception_of_python(read: Reader) -> None:
    check = (
        "cpp_fused_index_put_0, /var/cache/inductor/7e/c7e.main.cpp:136, index out of bounds: 0 <= tmp7 < 32L"
    )
    (fault,) = faults(reading := read(WITNESS, [*TRACE, f"RuntimeError: {check}"]))
    assert (fault.kind, fault.kernel, fault.label, fault.line) == (
        "input_check",
        "cpp_fused_index_put_0",
        "32",
        4,
    )
    assert fault.python is not None
    assert fault.python.line == 34
    assert reading.losses == []

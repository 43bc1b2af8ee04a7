"""Asserts of device code (formats.md 3.2, 3.3, observed.md 23, 35)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from analyzer.model import FaultRecord, Reading
from analyzer.witnesses.device_assert import WITNESS

Read = Any
PLACE = "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex"
END = "Assertion `srcIndex < srcSelectDimSize` failed."


def line(block: int, thread: int, place: str = PLACE, end: str = END) -> str:
    return f"{place}: block: [{block},0,0], thread: [{thread},0,0] {end}"


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def test_lines_of_one_assert_are_one_fault(read: Read) -> None:
    (fault,) = faults(read(WITNESS, [line(12, 3), line(12, 99), line(2, 7)]))
    assert (fault.kind, fault.code, fault.site, fault.count) == ("device_assert", 710, "device", 3)
    assert "3 lines: block [2,0,0] to [12,0,0], thread [3,0,0] to [99,0,0]" in fault.text
    assert (fault.line, fault.last_line) == (1, 3)
    assert fault.state is not None
    assert fault.state.kernel == "indexSelectLargeIndex"
    assert fault.label == "embedding / index_select"


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        (line(0, 0, "C:/w/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:92"), None),
        (line(0, 0, "/p/IndexKernel.cu:92: operator()"), None),
        (
            line(
                0,
                0,
                "/p/x.cu:92: [](char *, long)->auto::operator()(char *) const::[lambda(int) (instance 1)]",
            ),
            None,
        ),
        (line(0, 0, "/var/cache/inductor/ab/cabc.py:34: unknown"), None),
        (
            line(
                0,
                0,
                "/p/Loss.cu:250: void at::native::(anonymous namespace)::nll_loss_kernel<float>(float*)",
            ),
            "nll_loss_kernel",
        ),
        ("/src/x.hip:12: void at::native::k(int*): Device-side assertion `i < n' failed.", "k"),
    ],
)
def test_forms(read: Read, text: str, kernel: str | None) -> None:
    reading = read(WITNESS, [text])
    (fault,) = faults(reading)
    assert fault.kernel == kernel
    assert not reading.losses


def test_host_assert_is_no_device_assert(read: Read) -> None:
    text = "/src/rmm/pool.hpp:93: void f(): Assertion `status__ == cudaSuccess' failed."
    assert not any(gate in text for gate in WITNESS.gates)


def test_advice_of_c10_is_left_to_it(read: Read) -> None:
    text = "Device-side assertion tracking was not enabled by user."
    reading = read(WITNESS, [text])
    assert not reading.records
    assert not reading.losses


def test_two_asserts_in_one_line_and_one_behind_a_progress_bar(read: Read) -> None:
    bar = "Capturing CUDA graphs:  31%|###   | 16/51 [00:05<00:11,  3.01it/s]"
    (fault,) = faults(read(WITNESS, [bar + line(0, 1), line(0, 2) + line(0, 3)]))
    assert fault.count == 3
    assert fault.location is not None
    assert fault.location.file == "/pytorch/aten/src/ATen/native/cuda/Indexing.cu"


def test_line_broken_by_another_thread_counts_where_it_is_whole(read: Read) -> None:
    broken = line(0, 1)[: line(0, 1).index("thread") + 4]
    (fault,) = faults(read(WITNESS, [line(0, 5), broken + line(0, 2)]))
    assert fault.count == 2
    assert fault.location is not None
    assert fault.location.file.startswith("/pytorch/")


def test_cut_assert_is_a_loss(read: Read) -> None:
    reading = read(WITNESS, [line(0, 1)[: -len(" failed.") - 4]])
    assert not reading.records
    assert [loss.line for loss in reading.losses] == [1]


def test_log_cut_anywhere_never_breaks(read: Read) -> None:
    text = "\n".join([line(0, 1), line(0, 2)])
    for end in range(len(text)):
        read(WITNESS, text[:end])


def test_dsa_report_names_the_kernel(read: Read) -> None:
    body = [
        "Assertion failure {n}",
        "  GPU assertion failure message = row < n_rows",
        "  File containing assertion = /srv/ext/lookup.cu:31",
        "  Thread ID that failed assertion = [{n},0,0]",
        "  Block ID that failed assertion = [0,0,0]",
        "  File containing kernel launch = /srv/ext/lookup.cu:58",
        "  Name of kernel launched that led to failure = lookup_rows_kernel",
    ]
    lines = [
        "Looking for device-side assertion failure information...",
        "2 CUDA device-side assertion failures were found on GPU #0!",
        *(text.format(n=n) for n in (0, 1) for text in body),
    ]
    reading = read(WITNESS, lines)
    (fault,) = faults(reading)
    assert (fault.kernel, fault.count, fault.device, fault.line) == ("lookup_rows_kernel", 2, "gpu:0", 3)
    assert "launched at /srv/ext/lookup.cu:58" in fault.text
    assert not reading.losses


def test_a_hundred_thousand_lines_are_cheap(read: Read) -> None:
    lines = [line(n // 1024, n % 1024) for n in range(100_000)]
    began = time.process_time()
    (fault,) = faults(read(WITNESS, lines))
    assert fault.count == 100_000
    assert time.process_time() - began < 10


def test_a_kernel_that_only_checks_is_not_named(read: Read) -> None:
    """Its values were made by others (logits, softmax)."""
    place = "/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:112: _assert_async_cuda_kernel"
    end = "Assertion `probability tensor contains either `inf`, `nan` or element < 0` failed."
    (fault,) = faults(read(WITNESS, [line(0, 0, place, end)]))
    assert (fault.kind, fault.kernel, fault.state) == ("device_assert", None, None)


def test_a_hundred_thousand_different_asserts_are_few_faults(read: Read) -> None:
    """The first 200 are told apart, the others counted."""
    lines = [line(n % 50, n % 32, f"/p/x.cu:{n}: k", f"Assertion `i < {n}` failed.") for n in range(100_000)]
    began = time.process_time()
    reading = read(WITNESS, lines)
    found = faults(reading)
    assert time.process_time() - began < 5
    assert (len(found), sum(fault.count for fault in found)) == (201, 100_000)
    assert found[-1].text.endswith("one of 99800 further asserts, not told apart")
    assert len(reading.parsed) == 100_000


TRAP = "Assertion failed: /srv/DeepEP/csrc/kernels/internode.cu:483, condition: head[j] >= tail[j]"


def test_an_assert_that_traps_is_exact_for_its_expression(read: Read) -> None:
    """DeepEP and DeepGEMM: the kernel is not told, and the report that follows is 719."""
    (fault,) = faults(read(WITNESS, [TRAP, "Processed:  50%|###   | 4/8" + TRAP, TRAP + TRAP]))
    assert (fault.kind, fault.code, fault.site, fault.kernel) == ("device_assert", 719, "device", None)
    assert fault.count == 4
    assert fault.location is not None
    assert (fault.location.file, fault.location.line) == ("/srv/DeepEP/csrc/kernels/internode.cu", 483)
    assert "`head[j] >= tail[j]`" in fault.text


@pytest.mark.parametrize(
    "lines",
    [
        [TRAP.replace("internode.cu", "buffer.cpp")],
        [TRAP, "deep_gemm.AssertionException: Assertion failed: head[j] >= tail[j]"],
    ],
)
def test_the_same_words_of_the_host_are_no_device_assert(read: Read, lines: list[str]) -> None:
    """Old versions of DeepGEMM print them on the host too, and throw."""
    (fault,) = faults(read(WITNESS, lines))
    assert (fault.kind, fault.site, fault.code) == ("kernel_raised", "host", None)


@pytest.mark.parametrize(
    "text",
    [
        "Assertion failed: (n > 0), function alloc, file alloc.c, line 41.",
        "  assert(i < n);  // prints: x.cu:12: k: block: [0,0,0], thread: [0,0,0] Assertion `i < n` failed.",
        " * x.cu:12: k: block: [0,0,0], thread: [0,0,0] Assertion `i < n` failed.",
        "# x.cu:12: k: block: [0,0,0], thread: [0,0,0] Assertion `i < n` failed.",
        '  printf("x.cu:12: k: block: [0,0,0], thread: [0,0,0] Assertion `i < n` failed.");',
        "// /src/x.hip:12: void k(int*): Device-side assertion `i < n' failed.",
        f'    printf("{TRAP}\\n");',
        f"// {TRAP}",
    ],
)
def test_source_code_and_asserts_of_others_are_none(read: Read, text: str) -> None:
    reading = read(WITNESS, [text])
    assert (reading.records, reading.losses, reading.not_mine) == ([], [], [1])

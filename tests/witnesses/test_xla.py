"""JAX, XLA and TensorFlow (formats.md 3.14)."""

# ruff: noqa: E501  (a log line is as long as it is)

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord, Reading
from analyzer.witnesses.oom import WITNESS as OOM
from analyzer.witnesses.xla import WITNESS
from tests.witnesses.conftest import Reader

CODE = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"


def only(reading: Reading) -> FaultRecord:
    assert not reading.losses
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    return fault


@pytest.mark.parametrize("lead", ["", "CUDA error: "])
@pytest.mark.parametrize(
    "raised",
    ["jaxlib.xla_extension.XlaRuntimeError: INTERNAL: ", "jax.errors.JaxRuntimeError: INTERNAL: ", ""],
)
@pytest.mark.parametrize(
    "launch",
    [
        f"fusion_12 with block dimensions: 128x1x1 and grid dimensions: 448x1x1: {CODE}.",
        f"fusion_12 with block dimensions: 128x1x1 and grid dimensions: 4x1x9 and shared memory size: 65536: {CODE}",
        f"fusion_12 with cluster dimensions: 2x1x1 and block dimensions: 128x1x1 and grid dimensions: 4x1x1: {CODE}",
        f"fusion_12; block dims: 1024x1x1; grid dims: 8x1x1; shared memory size: 0: {CODE}",
        f"fusion_12; cluster dims: 2x1x1; block dims: 384x1x1; grid dims: 132x1x1; shared memory size: 232448: {CODE}",
        "fusion_12; CUDA error: an illegal memory access was encountered",
        f"fusion_12; CUDA error: {CODE}",
    ],
)  # fmt: skip
def test_the_kernel_is_named_without_its_dimensions(
    read: Reader, lead: str, raised: str, launch: str
) -> None:
    """Old and new wording of the launch call, with and without the lead that ``ToStatus`` puts before it."""
    fault = only(read(WITNESS, f"{raised}{lead}Failed to launch CUDA kernel: {launch}"))
    assert (fault.kernel, fault.code, fault.site) == ("fusion_12", 700, "launch")


def test_the_address_of_a_function_is_no_kernel_name(read: Reader) -> None:
    fault = only(read(WITNESS, f"failed to launch CUDA kernel: 0x7f1100; result: {CODE}"))
    assert (fault.kernel, fault.code) == (None, 700)


def test_rocm_tells_a_number(read: Reader) -> None:
    text = "Failed to launch ROCm kernel: redzone_checker with block dimensions: 1024x1x1: hipError_t(98)"
    fault = only(read(WITNESS, f"XlaRuntimeError: INTERNAL: {text}"))
    assert (fault.kernel, fault.code, fault.vendor) == ("redzone_checker", 98, "amd")


@pytest.mark.parametrize(
    "text",
    [
        f"XlaRuntimeError: INTERNAL: CUDA error: Could not synchronize on CUDA context: {CODE} :: *** Begin stack trace ***",
        f"Error recording event in stream: Error recording CUDA event: {CODE}; not marking stream as bad, as the Event",
        f"failed to enqueue async memcpy from device to host: {CODE}; host dst: 0x7f; GPU src: 0x7f; size: 4=0x4",
    ],
)
def test_other_calls_met_an_older_error(read: Reader, text: str) -> None:
    fault = only(read(WITNESS, text))
    assert (fault.code, fault.site, fault.kernel) == (700, "sync", None)


def test_an_allocator_that_asks_for_less_has_not_failed(read: Reader) -> None:
    """At start it asks for most of the device, and is refused on one that is in use."""
    text = (
        "failed to allocate 71.20GiB (76450152448 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    )
    reading = read(WITNESS, text)
    assert (reading.records, reading.parsed, reading.losses) == ([], [1], [])


SUMMARY = """\
XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    6.00GiB
              constant allocation:         0B
     preallocated temp allocation:    8.00GiB
                 total allocation:   14.01GiB
              total fragmentation:   12.0KiB (0.00%)
Peak buffers:
\tBuffer 1:
\t\tSize: 6.00GiB
\t\tOperator: op_name="jit(f)/concatenate[dimension=0]" source_file="/srv/models.py" source_line=689
\t\tXLA Label: concatenate
\t\tShape: f32[4096,128,3]
\t\t==========================

\tBuffer 2:
\t\tSize: 384.0KiB""".splitlines()


def test_the_summary_tells_the_need_and_the_largest_buffer(read: Reader) -> None:
    fault = only(read(OOM, SUMMARY))
    assert "8.00 GiB asked for (8589934592 bytes)" in fault.text
    assert "the step needs 14.01GiB in all, 8.00GiB of it for temporaries" in fault.text
    assert (
        "largest buffer is 6.00GiB f32[4096,128,3] of jit(f)/concatenate[dimension=0], made at models.py:689"
        in fault.text
    )


@pytest.mark.parametrize("cut", range(1, len(SUMMARY)))
def test_a_summary_that_is_cut_anywhere_is_read(read: Reader, cut: int) -> None:
    fault = only(read(OOM, [*SUMMARY[:cut], "next step"]))
    assert fault.last_line <= cut
    assert "8.00 GiB asked for" in fault.text


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("while trying to allocate 16.00GiB.", "16.00 GiB asked for (17179869184 bytes)"),
        ("allocating 8589934592 bytes.", "8.00 GiB asked for (8589934592 bytes)"),
    ],
)
def test_other_wordings_of_what_was_asked_for(read: Reader, asked: str, says: str) -> None:
    fault = only(read(OOM, f"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory {asked}"))
    assert says in fault.text
    assert fault.code is None

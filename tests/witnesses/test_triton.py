"""Triton's launcher and compiler (formats.md 3.9)."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.model import FaultRecord
from analyzer.witnesses.triton import WITNESS

Read = Any
HEADER = "Traceback (most recent call last):"
USER = '  File "/srv/app/a.py", line 7, in f'
JIT = [
    '  File "/v/site-packages/triton/runtime/jit.py", line 744, in run',
    "    kernel.run(grid_0)",
]
ERROR = "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered"


def fault_of(read: Read, lines: list[str]) -> FaultRecord:
    (fault,) = read(WITNESS, lines).records
    assert isinstance(fault, FaultRecord)
    return fault


@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        ("    add_kernel[(n // 256,)](x, out, BLOCK=256)", "add_kernel"),
        ("    self.ops.add_kernel[grid](", "add_kernel"),
        ("    triton_poi_fused_add_0.run(arg0_1, buf0, 64, stream=stream0)", "triton_poi_fused_add_0"),
        ("    out = launch(x)", None),
    ],
)
def test_kernel_is_what_the_launching_line_calls(read: Read, source: str, kernel: str | None) -> None:
    fault = fault_of(read, [HEADER, USER, source, *JIT, ERROR])
    assert (fault.kind, fault.code, fault.site, fault.kernel) == ("illegal_address", 700, "launch", kernel)
    assert fault.async_hint is False


def test_module_load_has_launched_nothing(read: Read) -> None:
    load = [
        '  File "/v/site-packages/triton/compiler/compiler.py", line 483, in _init_handles',
        "    x()",
    ]
    fault = fault_of(read, [HEADER, USER, "    k[grid](x)", *JIT, *load, ERROR])
    assert (fault.site, fault.kernel) == ("sync", None)
    assert "had not been launched" in fault.text


@pytest.mark.parametrize("word", ["Messsage", "Message"])
def test_hip_gives_the_number(read: Read, word: str) -> None:
    fault = fault_of(
        read, [f"RuntimeError: Triton Error [HIP]:  Code: 719, {word}: unspecified launch failure"]
    )
    assert (fault.code, fault.vendor, fault.site) == (719, "amd", "unknown")


def test_out_of_resources_is_exact(read: Read) -> None:
    line = "x.errors.OutOfResources: out of resource: shared memory, Required: 5, Hardware limit: 4. R"
    assert fault_of(read, [line]).kind == "too_many_resources"


def test_compilation_error_names_the_kernel_that_it_shows(read: Read) -> None:
    lines = ["triton.compiler.errors.CompilationError: at 2:4:", "def rope_kernel(x_ptr, stride):", "    ^"]
    fault = fault_of(read, lines)
    assert (fault.kind, fault.kernel) == ("kernel_raised", "rope_kernel")


def test_unknown_driver_text_is_unknown(read: Read) -> None:
    assert fault_of(read, ["RuntimeError: Triton Error [CUDA]: an error of tomorrow"]).kind == "unknown"


def test_form_that_is_not_read_is_a_loss(read: Read) -> None:
    reading = read(WITNESS, ["RuntimeError: Triton Error [XPU]: 7"])
    assert not reading.records
    assert len(reading.losses) == 1


def test_compile_time_is_said(read: Read) -> None:
    bench = [
        '  File "/v/site-packages/torch/_inductor/runtime/benchmarking.py", line 3, in benchmark_gpu',
        "    f()",
    ]
    assert "while autotuning" in fault_of(read, [HEADER, USER, "    g()", *bench, *JIT, ERROR]).text


RESOURCES = (
    "out of resource: shared memory, Required: 262144, Hardware limit: 232448. Reducing block sizes may help."
)


def test_a_candidate_that_autotuning_rejects_is_no_fault(read: Read) -> None:
    """Inductor prints it and goes on; without these words it is a fault."""
    reading = read(WITNESS, [f"Exception {RESOURCES} for benchmark choice TritonTemplateCaller(/tmp/x.py)"])
    assert (reading.records, reading.losses, reading.parsed) == ([], [], [1])
    assert fault_of(read, [f"triton.runtime.errors.OutOfResources: {RESOURCES}"]).kind == "too_many_resources"


def test_a_candidate_that_breaks_the_context_stays_a_fault(read: Read) -> None:
    line = f"Exception {ERROR.removeprefix('RuntimeError: ')} for benchmark choice X(/tmp/x.py)"
    assert fault_of(read, [line]).code == 700


def test_a_candidate_whose_launch_is_refused_is_no_fault(read: Read) -> None:
    line = "Exception Triton Error [CUDA]: invalid argument for benchmark choice X(/tmp/x.py)"
    assert read(WITNESS, [line]).records == []


def test_the_assembler_can_refuse_a_kernel(read: Read) -> None:
    """A device that is newer than the toolkit; nothing was launched."""
    text = "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error"
    fault = fault_of(read, [text])
    assert (fault.kind, fault.site, fault.code) == ("kernel_raised", "host", None)


def test_a_candidate_that_autotuning_ignores_is_no_fault(read: Read) -> None:
    said = "OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376."
    lines = ["Runtime error during autotuning: ", said, "Ignoring this choice."]
    assert not read(WITNESS, lines).records
    assert read(WITNESS, lines[:2]).records

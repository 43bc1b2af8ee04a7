"""XLA, TensorRT-LLM, ggml and the macros of other programs (formats.md 3.13-3.16)."""

# ruff: noqa: E501  (a log line is as long as it is)

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.model import FaultRecord, Reading
from analyzer.pipeline import analyze
from analyzer.schema import SourceFrame
from analyzer.witness import Witness
from analyzer.witnesses.c10 import WITNESS as C10
from analyzer.witnesses.calls import site_of_call
from analyzer.witnesses.cuda_macros import WITNESS as MACROS
from analyzer.witnesses.ggml import WITNESS as GGML
from analyzer.witnesses.trtllm import WITNESS as TRTLLM
from analyzer.witnesses.xla import WITNESS as XLA
from tests.witnesses.conftest import Reader

IMA = "an illegal memory access was encountered"
DRIVER = f"CUDA_ERROR_ILLEGAL_ADDRESS: {IMA}"
DEVICE = "  current device: 1, in function {function} at /srv/ggml-cuda.cu:2780\n  {call}"


def the_fault(reading: Reading) -> FaultRecord:
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert not reading.losses
    return fault


@pytest.mark.parametrize(
    ("witness", "text", "site", "code"),
    [
        (XLA, f"Failed to launch CUDA kernel: add with block dimensions: 128x1x1 and grid dimensions: 4x1x1: {DRIVER}", "launch", 700),
        (XLA, f"XlaRuntimeError: INTERNAL: Failed to retrieve branch_index value on stream 0x5: {DRIVER}", "sync", 700),
        (XLA, "XlaRuntimeError: INVALID_ARGUMENT: shapes do not match", "host", None),
        (XLA, f"could not synchronize on CUDA context: {DRIVER} :: begin stack", "sync", 700),
        (TRTLLM, f"CUDA runtime error in ::cudaEventSynchronize(get()): {IMA} (/app/x.h:66)", "sync", 700),
        (TRTLLM, "CUDA runtime error in cudaMalloc(&p, n): invalid argument (/app/x.h:66)", "host", 1),
        (TRTLLM, "1: [runner.cpp::execute::718] Error Code 1: Myelin (Final synchronize failed (700))", "sync", 700),
        (MACROS, f"CUDARuntimeError: cudaErrorIllegalAddress: {IMA}", "sync", 700),
        (MACROS, f"pycuda._driver.LogicError: cuStreamSynchronize failed: {IMA}", "sync", 700),
        (MACROS, "CudaAPIError: [719] Call to cuMemcpyDtoH results in UNKNOWN_CUDA_ERROR", "sync", 719),
        (MACROS, f"CUDA Error: {IMA} (700) /a.cuh: line 2340 at function cudaLaunchKernel((void*)k)", "launch", 700),
        (MACROS, "CUDA Error: CUDA_ERROR_ILLEGAL_ADDRESS /w/fmhaKernels.cuh 257", "sync", 700),
        (MACROS, "CUDA Error: invalid argument (CUDA Error: invalid argument (CUDA Error: ", "host", 1),
        (MACROS, "CUDA error 716 [/srv/cub.cuh, 210]: misaligned address", "sync", 716),
        (MACROS, "  what():  after reduction step 1: cudaErrorMisalignedAddress: misaligned address", "sync", 716),
        (MACROS, 'CUDA error at k.cu:596 code=700(cudaErrorIllegalAddress) "cudaGetLastError()"', "launch", 700),
        (MACROS, f"CUDA error at: /srv/rmm.cpp:45: cudaErrorIllegalAddress {IMA}", "sync", 700),
        (MACROS, f"CUDA error encountered at: /srv/x.cu:77: 700 cudaErrorIllegalAddress {IMA}", "sync", 700),
        (MACROS, f"GPUassert: {IMA} kernel.cu 57", "sync", 700),
        (MACROS, "Check failed: error == cudaSuccess (74 vs. 0)  misaligned addressF0327 10:11", "sync", 716),
        (MACROS, f"Check failed: e == cudaSuccess || e == cudaErrorCudartUnloading: CUDA: {IMA}", "sync", 700),
        (MACROS, f'DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, "{IMA}")', "sync", 700),
        (MACROS, "Error: CublasError(CUBLAS_STATUS_NOT_INITIALIZED)", "sync", None),
        (MACROS, f"Failed: Cuda error /w/custom_all_reduce.cuh:453 '{IMA}'", "sync", 700),
        (MACROS, f"RuntimeError: Failed: CUDA error /srv/DeepEP/csrc/deep_ep.cpp:411 '{IMA}'", "sync", 700),
        (MACROS, f"InternalError: Check failed: (e == cudaSuccess || e == cudaErrorCudartUnloading) is false: CUDA: {IMA}", "sync", 700),
        (MACROS, f"tvm.error.InternalError: CUDA: {IMA}", "sync", 700),
        (MACROS, "tvm.error.InternalError: CUDAError: cuModuleLoadData(&(module_[device_id]), data_.c_str()) failed with error: CUDA_ERROR_NO_BINARY_FOR_GPU", "host", 209),
        (MACROS, "CUDAError: Check failed: ret == 0 (-1 vs. 0) : cuStreamSynchronize(s) failed with error: CUDA_ERROR_ILLEGAL_ADDRESS", "sync", 700),
        (MACROS, "tvm.error.InternalError: CUDALaunch Error: CUDA_ERROR_INVALID_VALUE", "host", 1),
        (MACROS, "tvm.error.InternalError: CUDALaunch Error: CUDA_ERROR_LAUNCH_FAILED", "launch", 719),
        (MACROS, "Error: index-select invalid index 50300 with dim size 50257", "host", None),
        (GGML, "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "host", None),
        (GGML, "error: Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault)", "unknown", None),
        (GGML, "error: Ignored (for causing prior/excessive GPU errors) (00000004:kIOAccelCommandBufferCallbackErrorSubmissionsIgnored)", "unknown", None),
        (MACROS, f"CUDA driver error (a/b.hpp:108): 700 (CUDA_ERROR_ILLEGAL_ADDRESS, {IMA})", "sync", 700),
        (MACROS, "Exception: Failed to encode tensor map: 700", "sync", 700),
        (MACROS, f"CUDA failure 700: {IMA} ; GPU=0 ; hostname=w ; expr=cudaEventRecord(x)", "sync", 700),
    ],
)  # fmt: skip
def test_forms(read: Reader, witness: Witness, text: str, site: str, code: int | None) -> None:
    fault = the_fault(read(witness, text))
    assert (fault.site, fault.code) == (site, code)


def test_xla_names_the_next_kernel(read: Reader) -> None:
    """It never ran: its launch call returned the older error."""
    text = f"XlaRuntimeError: INTERNAL: x: Failed to launch CUDA kernel: fusion_7 with block dimensions: 1x1x1: {DRIVER}."
    fault = the_fault(read(XLA, text))
    assert (fault.kernel, fault.site, fault.name) == ("fusion_7", "launch", "CUDA_ERROR_ILLEGAL_ADDRESS")


@pytest.mark.parametrize(
    "behind",
    [
        f"; CUDA error: {IMA}",
        f"; block dims: 128x1x1; grid dims: 4x1x1; shared memory size: 0: {DRIVER}",
        f"; block dims: 1x1x1; grid dims: 4x1x1; cluster dims: 2x1x1; shared memory size: 64: {DRIVER}",
        f" with block dimensions: 8x1x1 and grid dimensions: 1x1x1 and shared memory size: 0: {DRIVER}",
    ],
)
def test_the_kernel_of_xla_ends_where_its_sizes_begin(read: Reader, behind: str) -> None:
    for before in ("XlaRuntimeError: INTERNAL: ", ""):
        fault = the_fault(read(XLA, f"{before}Failed to launch CUDA kernel: fusion_12{behind}"))
        assert (fault.kernel, fault.site, fault.code) == ("fusion_12", "launch", 700)


def test_an_error_in_the_place_of_the_kernel_is_no_kernel(read: Reader) -> None:
    """Programs that are not XLA print the error's words behind the same sentence."""
    fault = the_fault(read(XLA, f"Failed to launch CUDA kernel: {IMA}"))
    assert (fault.kernel, fault.code) == (None, 700)


@pytest.mark.parametrize("what", ["", "Failed to copy to the host: "])
def test_a_status_of_xla_is_read_wherever_it_is_logged(read: Reader, what: str) -> None:
    fault = the_fault(read(XLA, f"INTERNAL: CUDA error: {what}{DRIVER}"))
    assert (fault.code, fault.site, fault.kernel) == (700, "sync", None)
    assert not read(C10, f"INTERNAL: CUDA error: {what}{DRIVER}").records


@pytest.mark.parametrize("before", ["XlaRuntimeError: INTERNAL: ", "Failed to launch CUDA kernel: k; "])
def test_an_error_that_xla_tells_is_told_once(read: Reader, before: str) -> None:
    assert not read(C10, f"{before}CUDA error: {IMA}").records


@pytest.mark.parametrize(
    ("witness", "text"),
    [
        (XLA, f"failed to free device memory at 0x7f19; result: {DRIVER}"),
        (XLA, f"failed to unload module 0x52; leaking: {DRIVER}"),
        (XLA, f"Error polling for event status: failed to query event: {DRIVER}"),
        (XLA, "Unexpected Event status: 1"),
        (XLA, "unable to add host callback: CUDA_ERROR_INVALID_HANDLE: invalid resource handle"),
        (XLA, "Deallocating stream with pending work"),
        (TRTLLM, f"1: [cudaResources.cpp::~ScopedCudaEvent::24] Error Code 1: Cuda Runtime ({IMA})"),
        (TRTLLM, f"1: [defaultAllocator.cpp::deallocate::42] Error Code 1: Cuda Runtime ({IMA})"),
    ],
)
def test_what_destructors_print_is_teardown(read: Reader, witness: Witness, text: str) -> None:
    assert the_fault(read(witness, text)).teardown


def test_out_of_memory_of_xla_is_told_by_another_witness(read: Reader) -> None:
    reading = read(
        XLA, "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5 bytes."
    )
    assert (reading.records, reading.not_mine) == ([], [1])


def test_numbered_frames_belong_to_the_error(read: Reader) -> None:
    reading = read(
        TRTLLM, f"CUDA runtime error in f(): {IMA} (/a.h:6)\n1       0x7ff8 g() + 1\n2       0x7ff9 h\nx"
    )
    assert (reading.continuation, the_fault(reading).last_line) == ([2, 3], 3)


@pytest.mark.parametrize(
    ("function", "call", "site"),
    [
        ("ggml_backend_cuda_synchronize", "cudaStreamSynchronize(s)", "sync"),
        ("ggml_cuda_op_mul_mat", "cudaGetLastError()", "launch"),
    ],
)
def test_ggml_tells_it_over_several_lines(read: Reader, function: str, call: str, site: str) -> None:
    text = f"/srv/a.cu:88: CUDA error\nCUDA error: {IMA}\n{DEVICE.format(function=function, call=call)}"
    reading = read(GGML, text)
    fault = the_fault(reading)
    assert (fault.line, fault.block_first, fault.last_line) == (2, 1, 4)
    assert (fault.code, fault.site, fault.device) == (700, site, "gpu:1")
    assert fault.location == SourceFrame(file="/srv/ggml-cuda.cu", line=2780, function=function)
    assert [*reading.parsed, *reading.continuation] == [3, 1, 2, 4]


def test_the_ring_of_ik_llama_shows_the_last_calls(read: Reader) -> None:
    text = (
        f"CUDA error: {IMA}\n{DEVICE.format(function='f', call='cudaGetLastError()')}\nCUDA trace: 9 previous calls\n"
        "  8: function newest, file a.cu, line 2\n  7: function older, file a.cu, line 1"
    )
    assert the_fault(read(GGML, text)).text.endswith(
        "(the last calls before it: older (a.cu:1), newest (a.cu:2))"
    )


def test_ggml_on_rocm_is_amd(read: Reader) -> None:
    text = f"ROCm error: {IMA}\n{DEVICE.format(function='f', call='hipStreamSynchronize(s)')}"
    assert the_fault(read(GGML, text)).vendor == "amd"


def test_old_forms_of_ggml(read: Reader) -> None:
    text = 'CUDA error 716 at ggml-cuda.cu:6611: misaligned address\nGGML_ASSERT: ggml-cuda.cu:244: !"CUDA error"'
    assert the_fault(read(GGML, text)).code == 716


def test_a_host_assertion_of_ggml(read: Reader) -> None:
    fault = the_fault(read(GGML, "/srv/ggml.c:2700: GGML_ASSERT(n > 0) failed"))
    assert (fault.kind, fault.site) == ("host_abort", "host")


def test_other_words_about_the_current_device_are_none_of_ours(read: Reader) -> None:
    reading = read(GGML, "current device: cuda:0")
    assert (reading.records, reading.not_mine, reading.losses) == ([], [1], [])


def test_a_named_launch_with_an_error_of_its_own(read: Reader) -> None:
    """Class A of formats.md 1: the call that returns it is to blame, and its kernel is named."""
    text = (
        'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 91, in decode\n    run()\n'
        "RuntimeError: BatchDecode failed with error invalid configuration argument"
    )
    fault = the_fault(read(MACROS, text))
    assert (fault.kernel, fault.code, fault.site) == ("BatchDecode", 9, "launch")
    assert fault.python is not None
    assert fault.python.line == 91


def test_a_failed_api_call_is_no_kernel(read: Reader) -> None:
    fault = the_fault(read(MACROS, f"cudaMemcpy(a, f(b), c) failed with error {IMA}"))
    assert (fault.kernel, fault.site) == (None, "sync")


def test_somebody_elses_failed_with_error_is_none_of_ours(read: Reader) -> None:
    reading = read(MACROS, "upload failed with error 503\nshard_upload failed with error quota exceeded")
    assert (reading.records, reading.not_mine, reading.losses) == ([], [1, 2], [])


def test_a_host_assert_of_rmm_is_no_device_assert(read: Reader) -> None:
    text = "/srv/rmm.hpp:88: void f(void*): Assertion `status__ == cudaSuccess && x' failed."
    fault = the_fault(read(MACROS, text))
    assert (fault.kind, fault.site) == ("host_abort", "host")


@pytest.mark.parametrize(
    ("witness", "text"),
    [
        (XLA, "XlaRuntimeError: lower"),
        (TRTLLM, "CUDA runtime error in f()"),
        (GGML, "/srv/ggml.c:2700: GGML_ASSERT(n > 0"),
        (MACROS, "CUDA error at x.cu:1 code=(cudaErrorX)"),
    ],
)
def test_a_text_of_the_family_that_does_not_parse_is_a_loss(
    read: Reader, witness: Witness, text: str
) -> None:
    (loss,) = read(witness, text).losses
    assert loss.line == 1


def test_sites_of_calls() -> None:
    assert site_of_call("cuLaunchKernel(f, 1)") == "launch"
    assert site_of_call("cudaFree(p)") == "sync"
    assert site_of_call("") == "unknown"


def test_tvm_names_the_function_whose_launch_failed(read: Reader) -> None:
    lines = ["tvm.error.InternalError: CUDALaunch Error: CUDA_ERROR_INVALID_VALUE"]
    lines += [" grid=(1,100800,1),  block=(1024,1,1)", "// func_name=cumprod_kernel"]
    fault = the_fault(read(MACROS, lines))
    assert (fault.kernel, fault.kind, fault.last_line) == ("cumprod_kernel", "invalid_argument", 3)


def test_frames_of_tvm_in_cpp_are_not_the_users_python(read: Reader) -> None:
    lines = ["Traceback (most recent call last):", '  File "/srv/app/chat.py", line 33, in <module>']
    lines += ["    engine.chat()", '  File "/srv/tvm/src/runtime/cuda/cuda_device_api.cc", line 234, in ']
    fault = the_fault(
        read(MACROS, [*lines, f"InternalError: Check failed: (e == cudaSuccess) is false: CUDA: {IMA}"])
    )
    assert fault.python is not None
    assert fault.python.line == 33


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "out_of_memory"),
        (
            "Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault)",
            "illegal_address",
        ),
        ("Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)", "hang_timeout"),
        (
            "Impacting Interactivity (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)",
            "unknown",
        ),
    ],
)
def test_metal_says_what_happened_to_a_command_buffer(read: Reader, text: str, kind: str) -> None:
    lines = ["ggml_metal_graph_compute: command buffer 0 failed with status 5", f"error: {text}"]
    fault = the_fault(read(GGML, lines * 3))
    assert (fault.kind, fault.line, fault.count) == (kind, 2, 3)


CHECK = "F0712 10:01:01.123457 311 engine.cc:103] Check failed: blocks >= 0 (-1 vs. 0)"


def test_a_fatal_check_tells_why_the_process_aborts(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    end = "*** SIGABRT received by PID 311 (TID 311) on cpu 3 from PID 311; ***"
    log.write_text(f"{CHECK}\n*** Check failure stack trace: ***\n{end}\n")
    first, second = analyze([str(log)]).faults
    assert (first.role, first.kind, first.name, first.line) == ("root", "host_abort", "SIGABRT", 1)
    assert (second.role, second.line) == ("cascade", 3)


@pytest.mark.parametrize(
    "line",
    [
        CHECK.replace("F0712", "E0712"),
        "Check failed: blocks >= 0 (-1 vs. 0)",
        "F0712 10:01:01.123457 311 exec.cc:9] see Check failed: x",
    ],
)
def test_a_check_that_is_not_fatal_ends_nothing(tmp_path: Path, line: str) -> None:
    log = tmp_path / "engine.log"
    log.write_text(f"{line}\n")
    assert not analyze([str(log)]).faults


@pytest.mark.parametrize(
    "line",
    [
        '// e.g. CUDA error at x.cu:12 code=700(cudaErrorIllegalAddress) "cudaDeviceSynchronize()"',
        "  /// CUDA Error: an illegal memory access was encountered (700) /x.cuh: line 5 at function f",
    ],
)
def test_a_comment_of_a_source_is_no_error(read: Reader, line: str) -> None:
    reading = read(MACROS, line)
    assert (reading.records, reading.not_mine, reading.losses) == ([], [1], [])
    assert read(MACROS, line.lstrip(" /")).records

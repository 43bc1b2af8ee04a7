"""What the error codes, names and texts of CUDA and HIP mean (formats.md 2), as data.

One table for the numbered codes, one for the exceptions that only debuggers print (core dumps,
cuda-gdb). ``site``: A = the call that returns it is to blame (launch or argument error),
B = the device met it earlier, C = not decided by the code alone.
"""

from __future__ import annotations

from typing import Literal

from analyzer.schema import FaultKind, Value

SiteClass = Literal["A", "B", "C"]


class ErrorNames(Value):
    """Names of one code: CUDA runtime, CUDA driver, HIP. ``None`` = that API has no such code."""

    runtime: str | None = None
    driver: str | None = None
    hip: str | None = None


class ErrorCode(Value):
    """One error code. ``text`` is what ``cudaGetErrorString`` gives, ``legacy`` the code before CUDA 10.1."""

    code: int
    names: ErrorNames
    text: str
    kind: FaultKind
    site: SiteClass
    sticky: bool
    meaning: str
    next_step: str
    legacy: int | None = None


class DebuggerException(Value):
    """An exception as debuggers name it: ``number`` and ``name`` in core dumps, ``gdb_text`` in cuda-gdb."""

    number: int
    name: str
    gdb_text: str
    kind: FaultKind


def _code(  # noqa: PLR0917  (the columns of the table)
    code: int,
    runtime: str | None,
    driver: str | None,
    hip: str | None,
    text: str,
    kind: FaultKind,
    site: SiteClass,
    *,
    meaning: str,
    next_step: str,
    sticky: bool = False,
    legacy: int | None = None,
) -> ErrorCode:
    """A row of the table; names without ``cudaError``, ``CUDA_ERROR_``, ``hipError``."""
    names = ErrorNames(
        runtime=f"cudaError{runtime}" if runtime else None,
        driver=f"CUDA_ERROR_{driver}" if driver else None,
        hip=f"hipError{hip}" if hip else None,
    )
    return ErrorCode(
        code=code,
        names=names,
        text=text,
        kind=kind,
        site=site,
        sticky=sticky,
        meaning=meaning,
        next_step=next_step,
        legacy=legacy,
    )


def _capture(  # noqa: PLR0917  (the columns of the table)
    code: int, runtime: str, driver: str, text: str, meaning: str, site: SiteClass = "A"
) -> ErrorCode:
    """A row about stream capture; HIP took over the runtime's names."""
    step = "find the first error inside the capture region"
    return _code(
        code, runtime, driver, runtime, text, "invalid_argument", site, meaning=meaning, next_step=step
    )


def _exception(number: int, suffix: str, gdb_text: str, kind: FaultKind) -> DebuggerException:
    return DebuggerException(number=number, name=f"CUDBG_EXCEPTION_{suffix}", gdb_text=gdb_text, kind=kind)


# A table: an entry a code, not a line an argument.
# fmt: off
CODES: tuple[ErrorCode, ...] = (
    _code(
        1, "InvalidValue", "INVALID_VALUE", "InvalidValue", "invalid argument", "invalid_argument", "A",
        legacy=11, meaning="bad pointer, size or attribute in one call",
        next_step="read the call that is named; print its arguments",
    ),
    _code(
        2, "MemoryAllocation", "OUT_OF_MEMORY", "OutOfMemory", "out of memory", "out_of_memory", "A",
        legacy=2, meaning="device memory full, fragmented, or taken by another process",
        next_step="compare the numbers in the message with nvidia-smi; shrink the KV cache and graph pools",
    ),
    _code(
        3, "InitializationError", "NOT_INITIALIZED", "NotInitialized", "initialization error",
        "configuration", "A", legacy=3, meaning="fork after initialisation, or no usable driver",
        next_step="look for an earlier error; start workers by spawn",
    ),
    _code(
        4, "CudartUnloading", "DEINITIALIZED", "Deinitialized", "driver shutting down", "configuration", "A",
        legacy=29, meaning="a call during process exit",
        next_step="usually noise of the teardown; look earlier",
    ),
    _code(
        9, "InvalidConfiguration", None, "InvalidConfiguration", "invalid configuration argument",
        "invalid_configuration", "A", legacy=9,
        meaning="block above the limit, zero grid dimension, or too much shared memory",
        next_step="print the launch dimensions; look for a zero-size tensor",
    ),
    _code(
        98, "InvalidDeviceFunction", None, "InvalidDeviceFunction", "invalid device function",
        "no_kernel_image", "A", legacy=8, meaning="kernel not built for this device",
        next_step="compare the architectures of the build with the device",
    ),
    _code(
        100, "NoDevice", "NO_DEVICE", "NoDevice", "no CUDA-capable device is detected", "configuration", "A",
        legacy=38, meaning="no visible device, or the device is gone",
        next_step="check the visible devices and the kernel log",
    ),
    _code(
        101, "InvalidDevice", "INVALID_DEVICE", "InvalidDevice", "invalid device ordinal",
        "invalid_argument", "A", legacy=10,
        meaning="a device number or device attribute that does not exist here",
        next_step="check the device number and the call named",
    ),
    _code(
        200, "InvalidKernelImage", "INVALID_IMAGE", "InvalidImage", "device kernel image is invalid",
        "no_kernel_image", "A", legacy=47, meaning="binary broken, or too new for the driver",
        next_step="compare driver and toolkit versions",
    ),
    _code(
        201, "DeviceUninitialized", "INVALID_CONTEXT", "InvalidContext", "invalid device context",
        "invalid_argument", "A", meaning="no context is current, or it was destroyed",
        next_step="look for an earlier error",
    ),
    _code(
        209, "NoKernelImageForDevice", "NO_BINARY_FOR_GPU", "NoBinaryForGpu",
        "no kernel image is available for execution on the device", "no_kernel_image", "A", legacy=48,
        meaning="the build lacks this device's architecture",
        next_step="install or build for that architecture",
    ),
    _code(
        214, "ECCUncorrectable", "ECC_UNCORRECTABLE", "ECCNotCorrectable",
        "uncorrectable ECC error encountered", "ecc_error", "B", sticky=True, legacy=39,
        meaning="memory hardware",
        next_step="dmesg for Xid 48/63/64/94/95; nvidia-smi -q -d ECC; drain the node",
    ),
    _code(
        218, "InvalidPtx", "INVALID_PTX", "InvalidKernelFile", "a PTX JIT compilation failed",
        "no_kernel_image", "A", legacy=78,
        meaning="PTX for an architecture that the driver or device does not support",
        next_step="target architecture; ptxas log",
    ),
    _code(
        220, "NvlinkUncorrectable", "NVLINK_UNCORRECTABLE", None,
        "uncorrectable NVLink error detected during the execution", "ecc_error", "B", sticky=True,
        meaning="NVLink hardware", next_step="dmesg for Xid 74 and SXid",
    ),
    _code(
        226, "Contained", "CONTAINED", None,
        "Invalid access of peer GPU memory over nvlink or a hardware error", "peer_lost", "B", sticky=True,
        meaning="a peer process died or unmapped its memory, or a contained hardware error",
        next_step="did another rank die first? then dmesg for Xid 94",
    ),
    _code(
        400, "InvalidResourceHandle", "INVALID_HANDLE", "InvalidHandle", "invalid resource handle",
        "invalid_argument", "A", legacy=33,
        meaning="stream, event or graph of a dead context or of another device",
        next_step="look for an earlier error",
    ),
    _code(
        500, "SymbolNotFound", "NOT_FOUND", "NotFound", "named symbol not found", "no_kernel_image", "A",
        legacy=13, meaning="a kernel or symbol is not in the loaded module",
        next_step="check what was built and loaded",
    ),
    _code(
        600, "NotReady", "NOT_READY", "NotReady", "device not ready", "unknown", "A", legacy=34,
        meaning="not a failure: the answer to a query", next_step="ignore",
    ),
    _code(
        700, "IllegalAddress", "ILLEGAL_ADDRESS", "IllegalAddress",
        "an illegal memory access was encountered", "illegal_address", "B", sticky=True, legacy=77,
        meaning="a kernel used an address out of bounds, freed, or of another device",
        next_step="GPU core dump or compute-sanitizer; Xid 31 or 13 in dmesg",
    ),
    _code(
        701, "LaunchOutOfResources", "LAUNCH_OUT_OF_RESOURCES", "LaunchOutOfResources",
        "too many resources requested for launch", "too_many_resources", "A", legacy=7,
        meaning="registers times threads, or shared memory, above the limit",
        next_step="make the block smaller; launch bounds",
    ),
    _code(
        702, "LaunchTimeout", "LAUNCH_TIMEOUT", "LaunchTimeOut", "the launch timed out and was terminated",
        "hang_timeout", "B", sticky=True, legacy=6, meaning="endless loop or display watchdog",
        next_step="kernel length; headless GPU; Xid 8 or 109",
    ),
    _code(
        709, "ContextIsDestroyed", "CONTEXT_IS_DESTROYED", "ContextIsDestroyed", "context is destroyed",
        "unknown", "B", sticky=True, meaning="a call after the context was destroyed",
        next_step="look earlier",
    ),
    _code(
        710, "Assert", "ASSERT", "Assert", "device-side assert triggered", "device_assert", "B", sticky=True,
        legacy=59, meaning="an assertion in a kernel: index out of range, NaN probability, wrong token id",
        next_step="read the assertion lines printed before it",
    ),
    _code(
        714, "HardwareStackError", "HARDWARE_STACK_ERROR", None, "hardware stack error", "launch_failure",
        "B", sticky=True, legacy=72, meaning="stack corrupted or overflown in device code",
        next_step="compute-sanitizer; raise the device stack limit",
    ),
    _code(
        715, "IllegalInstruction", "ILLEGAL_INSTRUCTION", None, "an illegal instruction was encountered",
        "illegal_instruction", "B", sticky=True, legacy=73,
        meaning="bad generated code, wrong architecture, or a bad asynchronous copy descriptor",
        next_step="PC of a GPU core dump; rebuild for the exact architecture",
    ),
    _code(
        716, "MisalignedAddress", "MISALIGNED_ADDRESS", None, "misaligned address", "misaligned_address",
        "B", sticky=True, legacy=74,
        meaning="vector access on an unaligned view, or a wild pointer (same root as 700)",
        next_step="alignment of offsets and strides; compute-sanitizer",
    ),
    _code(
        717, "InvalidAddressSpace", "INVALID_ADDRESS_SPACE", None,
        "operation not supported on global/shared address space", "invalid_address_space", "B", sticky=True,
        legacy=75, meaning="a pointer into the wrong space, often a wild pointer (same root as 700)",
        next_step="as for 700",
    ),
    _code(
        718, "InvalidPc", "INVALID_PC", None, "invalid program counter", "illegal_instruction", "B",
        sticky=True, legacy=76, meaning="corrupt function pointer or code",
        next_step="compute-sanitizer; GPU core dump",
    ),
    _code(
        719, "LaunchFailure", "LAUNCH_FAILED", "LaunchFailure", "unspecified launch failure",
        "launch_failure", "B", sticky=True, legacy=4,
        meaning="a device exception without a closer code (700 under compute-sanitizer)",
        next_step="GPU core dump; Xid 13 or 43",
    ),
    _code(
        720, "CooperativeLaunchTooLarge", "COOPERATIVE_LAUNCH_TOO_LARGE", "CooperativeLaunchTooLarge",
        "too many blocks in cooperative launch", "too_many_resources", "A", legacy=82,
        meaning="the grid does not fit the device at once", next_step="occupancy of the kernel",
    ),
    _code(
        721, "TensorMemoryLeak", "TENSOR_MEMORY_LEAK", None, "tensor memory not completely deallocated",
        "launch_failure", "B", sticky=True, meaning="a kernel left tensor memory allocated",
        next_step="fix the deallocation in the kernel",
    ),
    _code(
        800, "NotPermitted", "NOT_PERMITTED", None, "operation not permitted", "configuration", "A",
        legacy=70, meaning="the driver does not allow this call", next_step="permissions and driver",
    ),
    _code(
        801, "NotSupported", "NOT_SUPPORTED", "NotSupported", "operation not supported", "configuration",
        "A", legacy=71, meaning="not supported on this system", next_step="device attributes; driver",
    ),
    _code(
        802, "SystemNotReady", "SYSTEM_NOT_READY", None, "system not yet initialized", "configuration", "A",
        meaning="the fabric manager is not running", next_step="start the fabric manager",
    ),
    _code(
        803, "SystemDriverMismatch", "SYSTEM_DRIVER_MISMATCH", None,
        "system has unsupported display driver / cuda driver combination", "configuration", "A",
        meaning="driver and library versions do not fit", next_step="reinstall the driver",
    ),
    _capture(
        900, "StreamCaptureUnsupported", "STREAM_CAPTURE_UNSUPPORTED",
        "operation not permitted when stream is capturing",
        "a synchronisation or allocation inside a capture",
    ),
    _capture(
        901, "StreamCaptureInvalidated", "STREAM_CAPTURE_INVALIDATED",
        "operation failed due to a previous error during capture", "an earlier error ended the capture", "C",
    ),
    _capture(
        902, "StreamCaptureMerge", "STREAM_CAPTURE_MERGE",
        "operation would result in a merge of separate capture sequences", "two captures were joined",
    ),
    _capture(
        903, "StreamCaptureUnmatched", "STREAM_CAPTURE_UNMATCHED",
        "capture was not ended in the same stream as it began", "capture ended on another stream",
    ),
    _capture(
        904, "StreamCaptureUnjoined", "STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work",
        "a forked stream was not joined before the end",
    ),
    _capture(
        905, "StreamCaptureIsolation", "STREAM_CAPTURE_ISOLATION",
        "dependency created on uncaptured work in another stream",
        "a captured stream waits for work outside",
    ),
    _capture(
        906, "StreamCaptureImplicit", "STREAM_CAPTURE_IMPLICIT",
        "operation would make the legacy stream depend on a capturing blocking stream",
        "use of the default stream inside a capture",
    ),
    _capture(
        907, "CapturedEvent", "CAPTURED_EVENT",
        "operation not permitted on an event last recorded in a capturing stream",
        "an event of a capture was queried",
    ),
    _capture(
        908, "StreamCaptureWrongThread", "STREAM_CAPTURE_WRONG_THREAD",
        "attempt to terminate a thread-local capture sequence from another thread",
        "capture ended by another thread",
    ),
    _code(
        999, "Unknown", "UNKNOWN", "Unknown", "unknown error", "unknown", "C", sticky=True, legacy=30,
        meaning="driver state lost, or the GPU is gone (Xid 79)", next_step="dmesg",
    ),
)

# cudadebugger.h and the cuda-gdb manual.
EXCEPTIONS: tuple[DebuggerException, ...] = (
    _exception(1, "LANE_ILLEGAL_ADDRESS", "Lane Illegal Address", "illegal_address"),
    _exception(2, "LANE_USER_STACK_OVERFLOW", "Lane User Stack Overflow", "launch_failure"),
    _exception(3, "DEVICE_HARDWARE_STACK_OVERFLOW", "Device Hardware Stack Overflow", "launch_failure"),
    _exception(4, "WARP_ILLEGAL_INSTRUCTION", "Warp Illegal Instruction", "illegal_instruction"),
    _exception(5, "WARP_OUT_OF_RANGE_ADDRESS", "Warp Out-of-range Address", "illegal_address"),
    _exception(6, "WARP_MISALIGNED_ADDRESS", "Warp Misaligned Address", "misaligned_address"),
    _exception(7, "WARP_INVALID_ADDRESS_SPACE", "Warp Invalid Address Space", "invalid_address_space"),
    _exception(8, "WARP_INVALID_PC", "Warp Invalid PC", "illegal_instruction"),
    _exception(9, "WARP_HARDWARE_STACK_OVERFLOW", "Warp Hardware Stack Overflow", "launch_failure"),
    _exception(10, "DEVICE_ILLEGAL_ADDRESS", "Device Illegal Address", "illegal_address"),
    _exception(11, "LANE_MISALIGNED_ADDRESS", "Lane Misaligned Address", "misaligned_address"),
    _exception(12, "WARP_ASSERT", "Warp Assert", "device_assert"),
    _exception(13, "LANE_SYSCALL_ERROR", "Lane Syscall Error", "launch_failure"),
    _exception(14, "WARP_ILLEGAL_ADDRESS", "Warp Illegal Address", "illegal_address"),
    _exception(15, "LANE_NONMIGRATABLE_ATOMSYS", "Invalid Managed Memory Access", "illegal_address"),
    _exception(16, "LANE_INVALID_ATOMSYS", "Lane Invalid Atomic Access", "illegal_address"),
    _exception(17, "CLUSTER_OUT_OF_RANGE_ADDRESS", "Cluster Out-of-range Address", "illegal_address"),
    _exception(18, "CLUSTER_BLOCK_NOT_PRESENT", "Cluster Target Block Not Present", "illegal_address"),
    _exception(19, "WARP_STACK_CANARY", "Warp Stack Canary", "launch_failure"),
    _exception(20, "WARP_TMEM_ACCESS_CHECK", "Warp Tensor Memory Access Check", "illegal_address"),
    _exception(21, "WARP_TMEM_LEAK", "Warp Tensor Memory Leak", "launch_failure"),
    _exception(22, "WARP_CALL_REQUIRES_NEWER_DRIVER", "Warp Call Requires Newer Driver", "configuration"),
)
# fmt: on


_BY_CODE = {row.code: row for row in CODES}
_BY_NAME = {
    name: row for row in CODES for name in (row.names.runtime, row.names.driver, row.names.hip) if name
} | {"hipErrorMemoryAllocation": _BY_CODE[2], "hipErrorInvalidResourceHandle": _BY_CODE[400]}  # aliases
_BY_TEXT = {row.text.lower(): row for row in CODES} | {
    "no rocm-capable device is detected": _BY_CODE[100]  # the one text that HIP words differently
}
_BY_EXCEPTION = {row.name: row for row in EXCEPTIONS}
_BY_GDB_TEXT = {row.gdb_text.lower(): row for row in EXCEPTIONS}


def by_code(code: int) -> ErrorCode | None:
    """The row of a number of today (not of the numbers before CUDA 10.1)."""
    return _BY_CODE.get(code)


def by_name(name: str) -> ErrorCode | None:
    """The row of a runtime, driver or HIP name; letters as printed."""
    return _BY_NAME.get(name)


def by_text(text: str) -> ErrorCode | None:
    """The row of an error text; case, outer spaces and a final full stop do not count."""
    return _BY_TEXT.get(text.strip().rstrip(".").lower())


def by_exception(name: str) -> FaultKind | None:
    """The kind of a ``CUDBG_EXCEPTION_*`` name; null = not in the table."""
    row = _BY_EXCEPTION.get(name)
    return row.kind if row else None


def by_gdb_text(text: str) -> FaultKind | None:
    """The kind of a text such as ``Warp Illegal Address``; null = not in the table."""
    row = _BY_GDB_TEXT.get(text.strip().rstrip(".").lower())
    return row.kind if row else None


def vendor_of(name: str) -> str | None:
    """``nvidia`` or ``amd``, by the name and not by the word "CUDA" before it (formats.md 3.1)."""
    if name.startswith("hipError"):
        return "amd"
    return "nvidia" if name.startswith(("cudaError", "CUDA_ERROR_")) else None

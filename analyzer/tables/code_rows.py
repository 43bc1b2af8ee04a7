"""The numbered error codes of CUDA and HIP (formats.md 2), as data.

``site``: A = the call that returns it is to blame (launch or argument error), B = the device met it earlier,
C = not decided by the code alone.
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
        35, "InsufficientDriver", None, "InsufficientDriver",
        "CUDA driver version is insufficient for CUDA runtime version", "configuration", "A", legacy=35,
        meaning="the driver is older than the toolkit of the build, or there is none",
        next_step="nvidia-smi shows the driver: update it, or install a build for it",
    ),
    _code(
        36, "CallRequiresNewerDriver", None, None, "API call is not supported in the installed CUDA driver",
        "configuration", "A", meaning="the driver is older than this call needs",
        next_step="update the driver, or install a build for it",
    ),
    _code(
        46, "DevicesUnavailable", "DEVICE_UNAVAILABLE", None,
        "CUDA-capable device(s) is/are busy or unavailable", "configuration", "A", legacy=46,
        meaning="the device is in exclusive or prohibited mode, or another process holds it",
        next_step="nvidia-smi -q -d COMPUTE; which process holds the device",
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
        704, "PeerAccessAlreadyEnabled", "PEER_ACCESS_ALREADY_ENABLED", "PeerAccessAlreadyEnabled",
        "peer access is already enabled", "invalid_argument", "A",
        meaning="not a failure: the state asked for was there already", next_step="ignore",
    ),
    _code(
        705, "PeerAccessNotEnabled", "PEER_ACCESS_NOT_ENABLED", "PeerAccessNotEnabled",
        "peer access has not been enabled", "invalid_argument", "A",
        meaning="peer access was switched off that was not on", next_step="read the call that is named",
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
        712, "HostMemoryAlreadyRegistered", "HOST_MEMORY_ALREADY_REGISTERED", "HostMemoryAlreadyRegistered",
        "part or all of the requested memory range is already mapped", "invalid_argument", "A",
        meaning="host memory was pinned twice", next_step="read the call that is named",
    ),
    _code(
        713, "HostMemoryNotRegistered", "HOST_MEMORY_NOT_REGISTERED", "HostMemoryNotRegistered",
        "pointer does not correspond to a registered memory region", "invalid_argument", "A",
        meaning="host memory was released that was not pinned", next_step="read the call that is named",
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
    _code(
        804, "CompatNotSupportedOnDevice", "COMPAT_NOT_SUPPORTED_ON_DEVICE", None,
        "forward compatibility was attempted on non supported HW", "configuration", "A",
        meaning="a compatibility library newer than the driver, on a device that does not allow it",
        next_step="update the driver, or take the compatibility library out of LD_LIBRARY_PATH",
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
# fmt: on

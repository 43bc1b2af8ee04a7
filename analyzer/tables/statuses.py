"""What the statuses of GPU libraries and of other runtimes mean, by the end of their names (formats.md 3.5).

``LIBRARIES`` has the prefixes under which the vendors' headers name them.
"""

from __future__ import annotations

import re

from analyzer.model import FaultSite
from analyzer.schema import FaultKind, Value


class Meaning(Value):
    """What a status means. ``suffix``: how its name ends or goes on (cuDNN 9 adds words)."""

    suffix: str
    kind: FaultKind
    site: FaultSite
    said: str


class Library(Value):
    """Who names its errors with a prefix. ``vendor``: null = any."""

    prefix: str
    vendor: str | None = None


def _meaning(suffix: str, kind: FaultKind, site: FaultSite, said: str = "") -> Meaning:
    return Meaning(suffix=suffix, kind=kind, site=site, said=said)


_LATE = " (its own kernel or anything launched before it failed)"
_WORKSPACE = " (the first failure of the process: most often no memory for the handle and its workspace)"
POISONED = " (the context was already lost)"
MEANINGS: tuple[Meaning, ...] = (
    _meaning("ALLOC_FAILED", "out_of_memory", "host"),
    _meaning("ALLOCATION_FAILED", "out_of_memory", "host"),
    _meaning("OUT_OF_MEMORY", "out_of_memory", "host"),
    _meaning("EXECUTION_FAILED", "library_status", "sync", _LATE),
    _meaning("MAPPING_ERROR", "library_status", "sync", _LATE),
    _meaning("INTERNAL_ERROR", "library_status", "sync", " (its own error, or one of earlier work)"),
    _meaning("NOT_INITIALIZED", "out_of_memory", "host", _WORKSPACE),
    _meaning("INVALID_VALUE", "invalid_argument", "launch"),
    _meaning("BAD_PARAM", "invalid_argument", "launch"),
    _meaning("NOT_SUPPORTED", "invalid_argument", "launch"),
    _meaning("INVALID_SIZE", "invalid_argument", "launch"),
    _meaning("MATRIX_TYPE_NOT_SUPPORTED", "invalid_argument", "launch"),
    _meaning("ARCH_MISMATCH", "no_kernel_image", "host"),
    _meaning("VERSION_MISMATCH", "configuration", "host"),
    _meaning("LICENSE_ERROR", "configuration", "host"),
    _meaning("COMPILATION", "no_kernel_image", "host", " (the kernel was not compiled)"),
    _meaning("INVALID_OPTION", "configuration", "host"),
)
UNKNOWN = _meaning("", "library_status", "sync")
# Names of other headers; read only where nobody else knows the text.
_FURTHER: tuple[Meaning, ...] = (
    *MEANINGS,
    _meaning("MEMORY_ERROR", "out_of_memory", "host"),
    _meaning("OUT_OF_HOST_MEMORY", "out_of_memory", "host"),
    _meaning("OUT_OF_DEVICE_MEMORY", "out_of_memory", "host"),
    _meaning("MEM_OBJECT_ALLOCATION_FAILURE", "out_of_memory", "host"),
    _meaning("OUT_OF_RESOURCES", "library_status", "sync"),
    _meaning("EXEC_FAILED", "library_status", "sync", _LATE),
    _meaning("LAUNCH_FAILURE", "library_status", "sync", _LATE),
    _meaning("ZERO_PIVOT", "invalid_argument", "host"),
    _meaning("DEVICE_LOST", "device_lost", "sync"),
    _meaning("DEVICE_HUNG", "device_lost", "sync"),
    _meaning("COMPILATION_FAILURE", "no_kernel_image", "host"),
    _meaning("BUILD_PROGRAM_FAILURE", "no_kernel_image", "host"),
    _meaning("MODULE_BUILD_FAILURE", "no_kernel_image", "host"),
    _meaning("MODULE_LINK_FAILURE", "no_kernel_image", "host"),
    _meaning("INVALID_BINARY", "no_kernel_image", "host"),
    _meaning("INVALID_NATIVE_BINARY", "no_kernel_image", "host"),
    _meaning("INCOMPATIBLE_DRIVER", "configuration", "host"),
    _meaning("DEVICE_NOT_FOUND", "configuration", "host"),
    _meaning("DEPENDENCY_UNAVAILABLE", "configuration", "host"),
    _meaning("INITIALIZATION_FAILED", "configuration", "host"),
    _meaning("UNINITIALIZED", "configuration", "host"),
    _meaning("UNSUPPORTED", "invalid_argument", "host"),
    _meaning("UNIMPLEMENTED", "invalid_argument", "host"),
    _meaning("INVALID", "invalid_argument", "host"),
    _meaning("NUM_HANG", "hang_timeout", "sync"),
    _meaning("TIMEOUT", "hang_timeout", "sync"),
)
_NVIDIA = (
    *("CUBLAS_STATUS_", "CUDNN_STATUS_", "CUSPARSE_STATUS_", "CUSOLVER_STATUS_", "CURAND_STATUS_"),
    *("CUTENSOR_STATUS_", "CUSPARSELT_STATUS_", "NVJPEG_STATUS_", "NVRTC_ERROR_", "NVJITLINK_ERROR_"),
    *("NVPTXCOMPILE_ERROR_", "NVVM_ERROR_", "NVML_ERROR_", "CUFFT_"),
)
_AMD = (
    *("HIPBLAS_STATUS_", "HIPSPARSE_STATUS_", "HIPSOLVER_STATUS_", "HIPRAND_STATUS_", "ROCRAND_STATUS_"),
    *("HIPRTC_ERROR_", "HIPFFT_", "rocblas_status_", "rocsparse_status_", "miopenStatus"),
    "HSA_STATUS_ERROR_",
)
_OTHERS = ("ZE_RESULT_ERROR_", "UR_RESULT_ERROR_", "PI_ERROR_", "VK_ERROR_", "CL_", "NRT_", "ACL_ERROR_")
LIBRARIES: tuple[Library, ...] = (
    *(Library(prefix=prefix, vendor="nvidia") for prefix in _NVIDIA),
    *(Library(prefix=prefix, vendor="amd") for prefix in _AMD),
    *(Library(prefix=prefix) for prefix in _OTHERS),
)
# Prefixes that stand before constants of other meaning too: only these names are errors.
_SHARED = {
    "CUFFT_": "INVALID_|ALLOC_FAILED|INTERNAL_ERROR|EXEC_FAILED|SETUP_FAILED|UNALIGNED_DATA|NO_WORKSPACE"
    "|NOT_IMPLEMENTED|NOT_SUPPORTED|LICENSE_ERROR|PARSE_ERROR|INCOMPLETE_PARAMETER_LIST",
    "HIPFFT_": "INVALID_|ALLOC_FAILED|INTERNAL_ERROR|EXEC_FAILED|SETUP_FAILED|UNALIGNED_DATA|NO_WORKSPACE"
    "|NOT_IMPLEMENTED|NOT_SUPPORTED|PARSE_ERROR|INCOMPLETE_PARAMETER_LIST",
    "CL_": "INVALID_|OUT_OF_|MEM_OBJECT_ALLOCATION_FAILURE|BUILD_PROGRAM_FAILURE|COMPILE_PROGRAM_FAILURE"
    "|LINK_PROGRAM_FAILURE|DEVICE_NOT_(?:FOUND|AVAILABLE)|COMPILER_NOT_AVAILABLE|MAP_FAILURE"
    "|EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST|MISALIGNED_SUB_BUFFER_OFFSET|PROFILING_INFO_NOT_AVAILABLE",
    "NRT_": "FAILURE|INVALID|RESOURCE|TIMEOUT|HW_ERROR|QUEUE_FULL|LOAD_NOT_ENOUGH_NC|UNSUPPORTED"
    "|FAIL_|UNINITIALIZED|CLOSED|EXEC_(?!COMPLETED_WITH_NUM_ERR\\b)",
}
_FINE = r"(?:(?:STATUS_)?SUCCESS|success|Success|NOT_READY|COMPLETED)\b"


def name_pattern() -> str:
    """A regular expression (without groups) for the name of a failure of any of these libraries."""
    names = []
    for library in LIBRARIES:
        rest = _SHARED.get(library.prefix)
        names.append(f"{library.prefix}(?!{_FINE})" + (f"(?:{rest})[A-Z0-9_]*" if rest else r"\w+"))
    return rf"(?<![\w.])(?:{'|'.join(names)})"


def meaning_of(status: str) -> Meaning:
    """``CUDNN_STATUS_EXECUTION_FAILED_CUDART`` is an EXECUTION_FAILED."""
    return next((row for row in MEANINGS if has(status, row.suffix)), UNKNOWN)


def further_meaning(status: str) -> Meaning:
    """The same for the names of all libraries, in whatever case their header writes them."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", status).upper()
    name = next((words.removeprefix(p.prefix.upper()) for p in LIBRARIES if status.startswith(p.prefix)), "")
    return next((row for row in _FURTHER if has(name, row.suffix)), UNKNOWN)


def library_of(status: str) -> Library | None:
    """The library whose prefix a name has."""
    return next((one for one in LIBRARIES if status.startswith(one.prefix)), None)


def has(status: str, suffix: str) -> bool:
    """Whether a status is of a meaning: its name begins or ends with the words."""
    name = status.partition("_STATUS_")[2] or status
    return name.startswith(suffix) or name.endswith(suffix)

"""What the error codes, names and texts of CUDA and HIP mean (formats.md 2), as data, and how to find them.

The numbered codes stand in ``code_rows``; here are the exceptions that only debuggers print (core dumps,
cuda-gdb).
"""

from __future__ import annotations

from analyzer.schema import FaultKind, Value
from analyzer.tables.code_rows import CODES, ErrorCode

__all__ = [
    "CODES",
    "EXCEPTIONS",
    "DebuggerException",
    "ErrorCode",
    "by_code",
    "by_exception",
    "by_gdb_text",
    "by_name",
    "by_text",
    "vendor_of",
]


class DebuggerException(Value):
    """An exception as debuggers name it: ``number`` and ``name`` in core dumps, ``gdb_text`` in cuda-gdb."""

    number: int
    name: str
    gdb_text: str
    kind: FaultKind


def _exception(number: int, suffix: str, gdb_text: str, kind: FaultKind) -> DebuggerException:
    return DebuggerException(number=number, name=f"CUDBG_EXCEPTION_{suffix}", gdb_text=gdb_text, kind=kind)


# cudadebugger.h and the cuda-gdb manual.
# fmt: off
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
    "no rocm-capable device is detected": _BY_CODE[100],  # the one text that HIP words differently
    "all cuda-capable devices are busy or unavailable": _BY_CODE[46],  # before CUDA 12
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

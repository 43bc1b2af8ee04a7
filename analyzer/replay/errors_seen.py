"""What an error text that a child left says: which kind of fault, and whether the device told it."""

from __future__ import annotations

from analyzer.schema import FaultKind
from analyzer.tables.codes import by_name, by_text

_DEVICE_MARKS = (
    "CUDA error",
    "CUDA_ERROR_",
    "cudaError",
    "HIP error",
    "hipError",
    "Triton Error",
    "CUDA driver error",
)
_OUT_OF_MEMORY = ("out of memory", "OutOfMemory", "MemoryError", "bad_alloc")
_SIGNALS: dict[int, FaultKind] = {
    4: "illegal_instruction",
    6: "host_abort",
    7: "host_segfault",
    11: "host_segfault",
}


def is_device_error(text: str) -> bool:
    """Whether the text is about work on a device, so that without serialisation its place is late."""
    return any(mark in text for mark in _DEVICE_MARKS)


def kind_of_error(error_type: str, text: str) -> FaultKind:
    """The kind of an exception that an op raised.

    Args:
        error_type: Class name, may be ``''``.
        text: Its message.
    """
    if any(mark in text or mark in error_type for mark in _OUT_OF_MEMORY):
        return "out_of_memory"
    for line in text.splitlines():
        for part in (line, *line.split(": ")):
            row = by_text(part) or by_name(part.strip(" `'.").split(" ")[0])
            if row is not None:
                return row.kind
    return "unknown" if is_device_error(text) else "input_check"


def kind_of_signal(number: int) -> FaultKind:
    """The kind of a death by signal."""
    return _SIGNALS.get(number, "unknown")

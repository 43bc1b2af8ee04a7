"""Was an exception the fault, or did our call not fit the op?

The types of a log can be wrong or incomplete. A call that the op's host-side checks refuse (number of
arguments, shapes, types) says nothing about the crash, so it must not be taken for it.
"""

from __future__ import annotations

import re

from analyzer.replay.worker.plan_file import Op

# A device or one of its libraries said it, or memory is gone.
_DEVICE = re.compile(
    r"CUDA error|CUDA_ERROR_|cudaError|CUDA driver error|HIP error|hipError|Triton Error|device-side assert"
    r"|CU(?:BLAS|DNN|SPARSE|SOLVER)_STATUS_|out of memory|can't allocate memory|bad_alloc"
    r"|An error occurred in kernel"
)
# Checks of arguments whose words sound like those of an index out of range.
_OF_ARGUMENTS = re.compile(
    r"Dimension out of range|too many indices|tensors used as indices|could not be broadcast"
    r"|does not match the shape|negative dimension|not implemented for|Could not run|missing value for"
    r"|failed to match any schema|compiled with CUDA"
)
_OF_VALUES = re.compile(
    r"out of (?:\w+ )?(?:range|bounds?)|\bbounds\b|valid range|not in range|\bnan\b|\binf\b|\bnegative\b"
    r"|non-negative|Class values|positive-definite|singular|not finite|single nonzero value|\bassert",
    re.IGNORECASE,
)
_OF_SHAPES = re.compile(
    r"\bshapes?\b|\bsizes?\b|\bexpect(?:s|ed)?\b.*\b(?:got|but|found)\b|must match|must be|must have"
    r"|same dtype|same device|dimensions?\b|\bdtypes?\b|scalar type",
    re.IGNORECASE | re.DOTALL,
)
_ALWAYS_FAULTS = (IndexError, MemoryError, AssertionError, ArithmeticError)


def is_call_error(op: Op, error: BaseException) -> bool:
    """Whether the exception of a launch says that the call did not fit the op.

    Indices out of range, assertions, bad values, devices and memory are faults. What torch's own ops raise
    else is a check of arguments; code of the user's is believed unless its text speaks of shapes or types.
    """
    text = str(error)
    if _DEVICE.search(text) or "OutOfMemory" in type(error).__name__:
        return False
    if isinstance(error, (TypeError, NotImplementedError)) or _OF_ARGUMENTS.search(text):
        return True
    if isinstance(error, _ALWAYS_FAULTS) or "assert" in op.call or _OF_VALUES.search(text):
        return False
    is_own = op.executor == "user" or ("::" in op.call and not op.call.startswith("aten::"))
    return not is_own or _OF_SHAPES.search(text) is not None

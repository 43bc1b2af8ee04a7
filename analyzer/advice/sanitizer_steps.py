"""What to do next where compute-sanitizer (or cuda-memcheck) ran already (observed.md 26)."""

from __future__ import annotations

import re

from analyzer.model import FaultRecord
from analyzer.schema import NextStep
from analyzer.witness import witness_named

SANITIZER = "compute-sanitizer"
_SOURCE_LINE = re.compile(r" in \S+\.\w+:[0-9]+")


def is_of_sanitizer(fault: FaultRecord) -> bool:
    """Whether the sanitizer told the fault, so that it ran already."""
    return witness_named(fault.witness).program == SANITIZER


def sanitizer_steps(fault: FaultRecord) -> list[NextStep]:
    """For a fault that the sanitizer told from inside the device."""
    lines = f"{fault.block_first},{max(fault.last_line, fault.block_first)}"
    why = (
        "the sanitizer has run, and this is its report: the access, the address beside the nearest "
        "allocation, the host stack of the launch"
    )
    steps = [NextStep(command=f"sed -n '{lines}p' <this log>", why=why)]
    if _has_source_line(fault):
        return steps
    why = f"with line tables the sanitizer names the source line in {_kernel(fault)}"
    return [*steps, NextStep(command="nvcc -lineinfo <the other options of your build>", why=why)]


def _has_source_line(fault: FaultRecord) -> bool:
    frame = (fault.state.frame if fault.state else None) or fault.location
    return frame is not None or _SOURCE_LINE.search(fault.text) is not None


def _kernel(fault: FaultRecord) -> str:
    name = fault.state.kernel if fault.state else fault.kernel
    return (name or "the kernel").partition("(")[0]

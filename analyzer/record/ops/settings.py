"""Names and defaults that the recorder and the recorded process share. No imports: both sides load it."""

from __future__ import annotations

OPS_ENV = "TRACE_ANALYZE_TORCH_OPS"  # folder of the rings; set = the hook is active
RING_ENV = "TRACE_ANALYZE_RING"  # ops a ring holds
INPUTS_ENV = "TRACE_ANALYZE_INPUTS"  # "none", "cpu" or "sync"

STEPS_ENV = "TRACE_ANALYZE_MAX_STEPS"  # set = each execution of a MAX model is marked

RING_OPS = 4096  # ten steps of a 12-layer model: the fault is at most two steps back (design.md 4.5)
RING_SUFFIX = ".ring"
TEXT_BYTES = 8 << 20  # of a ring's texts; a server has about a thousand distinct ones of 1 KB
INPUT_BYTES = 16 << 20  # of a ring's saved inputs
STEP_MARK = "[RECORD] STEP "  # in front of the first op after the outermost module was called again
INPUT_LIMIT = 64 << 10  # bytes of one input that are saved in full: 8192 indices of 64 bits


def step_mark(step: int) -> bytes:
    """The line that begins a step of the recorded program: ``[RECORD] STEP n=7``."""
    return f"{STEP_MARK}n={step}".encode()

"""What to run next on a MAX program (observed.md 1, 14, 17, 20)."""

from __future__ import annotations

from analyzer.advice.commands import COMMAND, KNOWN, MAX_POOL_OFF
from analyzer.advice.dump_steps import HIDDEN, dump_step
from analyzer.advice.program import Program
from analyzer.advice.sanitizer_steps import is_of_sanitizer
from analyzer.model import FaultRecord
from analyzer.schema import Confidence, Modes, NextStep

SYNC = f"MODULAR_DEBUG=op-log-level=TRACE,source-tracebacks,device-sync-mode {COMMAND}"

_SANITIZE = f"{MAX_POOL_OFF} compute-sanitizer --tool memcheck {COMMAND}"


def max_steps(
    fault: FaultRecord, confidence: Confidence, modes: Modes, program: Program, *, has_ops: bool
) -> list[NextStep]:
    """Commands in the order in which they should be tried; none for a kind that needs no further run."""
    if fault.kind == "nan":
        return _for_nan(modes)
    if fault.kind == "device_assert":
        return [] if modes.device_sync_mode else [sync_step("names the op whose kernel failed the assertion")]
    if confidence in KNOWN:
        return [*dump_step(fault, modes, program, None), *_sanitizer(fault)]
    why = (
        "starts with blocking launches (the mode is latched at start), so that the error names the op "
        "and its Python line"
    )
    if not has_ops:
        why += "; TRACE in capitals also records which ops ran"
    return [sync_step(why), *dump_step(fault, modes, program, f"{HIDDEN} when it fails")]


def sync_step(why: str) -> NextStep:
    """MAX with blocking launches and an op log."""
    return NextStep(command=SYNC, why=why)


def _for_nan(modes: Modes) -> list[NextStep]:
    if modes.source_tracebacks is not False:
        return []
    why = "adds the Python lines that made the checked op"
    return [NextStep(command=f"MODULAR_DEBUG=nan-check,source-tracebacks {COMMAND}", why=why)]


def _sanitizer(fault: FaultRecord) -> list[NextStep]:
    if is_of_sanitizer(fault):
        return []
    why = (
        "gives the exact thread, address and allocation inside the kernel; the pool is off because pooled "
        "memory hides overruns"
    )
    return [NextStep(command=_SANITIZE, why=why)]

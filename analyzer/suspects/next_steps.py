"""What to run next: the cheapest command that adds knowledge, with the reason."""

from __future__ import annotations

from analyzer.model import Advice, FaultRecord
from analyzer.schema import Confidence, Modes, NextStep

COREDUMP_ENV = (
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_SHOW_PROGRESS=1 "
    "CUDA_COREDUMP_GENERATION_FLAGS=skip_nonrelocated_elf_images,skip_global_memory,"
    "skip_shared_memory,skip_local_memory"
)
COMMAND = "<your command>"
_ADDRESS = frozenset(
    {
        "illegal_address",
        "misaligned_address",
        "invalid_address_space",
        "launch_failure",
        "illegal_instruction",
    }
)
_MAX_SYNC = f"MODULAR_DEBUG=op-log-level=TRACE,source-tracebacks,device-sync-mode {COMMAND}"
_MAX_SANITIZE = (
    "MODULAR_DEVICE_CONTEXT_MEMORY_MANAGER_SIZE_PERCENT=0 compute-sanitizer --tool memcheck " + COMMAND
)


def next_steps(
    fault: FaultRecord | None,
    confidence: Confidence,
    modes: Modes,
    advice: list[Advice],
    *,
    has_ops: bool,
) -> list[NextStep]:
    """Commands in the order in which they should be tried."""
    own = _own_steps(fault, confidence, modes, has_ops=has_ops)
    told = {one.command: one for one in advice if one.command and not _said_better(one.command, own)}
    return [NextStep(command=text, why=f"line {one.line}: {one.text}") for text, one in told.items()] + own


def _own_steps(
    fault: FaultRecord | None, confidence: Confidence, modes: Modes, *, has_ops: bool
) -> list[NextStep]:
    if fault is None:
        return _for_clean(modes)
    if fault.kind == "nan":
        return _for_nan(modes)
    if fault.kind in _ADDRESS:
        return _for_address(confidence, has_ops=has_ops)
    return []


def _said_better(command: str, steps: list[NextStep]) -> bool:
    """Whether a step of ours sets all that the log's own advice sets, and more."""
    words = command.replace("=", ",").split(",")
    return any(all(word in step.command for word in words) for step in steps)


def _for_clean(modes: Modes) -> list[NextStep]:
    partial = [one for one in modes.nan_check if one.checked < one.of]
    if not partial:
        return []
    why = (
        f"only {partial[0].checked} of {partial[0].of} float outputs were NaN-checked "
        f"(stride {partial[0].stride}); the stride can be set in the configuration file only"
    )
    return [NextStep(command="max-debug.nan-check-stride = 1   # in the MAX configuration file", why=why)]


def _for_nan(modes: Modes) -> list[NextStep]:
    if modes.source_tracebacks is False:
        return [
            NextStep(
                command=f"MODULAR_DEBUG=nan-check,source-tracebacks {COMMAND}",
                why="adds the Python lines that made the checked op",
            )
        ]
    return []


def _for_address(confidence: Confidence, *, has_ops: bool) -> list[NextStep]:
    if confidence in ("proven", "confirmed"):
        return [
            NextStep(
                command=_MAX_SANITIZE,
                why="gives the exact thread, address and allocation inside the kernel; "
                "the pool is off because pooled memory hides overruns",
            )
        ]
    why_sync = (
        "starts with blocking launches (the mode is latched at start), so that the error names the op "
        "and its Python line"
    )
    if not has_ops:
        why_sync += "; TRACE in capitals also records which ops ran"
    return [
        NextStep(command=_MAX_SYNC, why=why_sync),
        NextStep(
            command=f"{COREDUMP_ENV} {COMMAND}",
            why="if blocking hides it (a race): names the faulting kernel without blocking, at about two "
            "seconds when it fails",
        ),
    ]

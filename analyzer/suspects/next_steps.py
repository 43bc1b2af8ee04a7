"""What to run next: the cheapest command that adds knowledge, with the reason."""

from __future__ import annotations

from analyzer.model import Advice, FaultRecord
from analyzer.schema import Confidence, Modes, NextStep
from analyzer.suspects import driver_steps, host_steps, torch_steps
from analyzer.suspects.torch_steps import COMMAND, COREDUMP_ENV

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
    if fault is not None and driver_steps.is_hardware(fault):
        return own  # what the log advises debugs software
    told = {one.command: one for one in advice if one.command and not _said_better(one.command, own)}
    return [NextStep(command=text, why=f"line {one.line}: {one.text}") for text, one in told.items()] + own


def _own_steps(
    fault: FaultRecord | None, confidence: Confidence, modes: Modes, *, has_ops: bool
) -> list[NextStep]:
    if fault is None:
        return _for_clean(modes)
    if _is_of_driver(fault):
        return driver_steps.driver_steps(fault, confidence)
    if fault.kind in {"out_of_memory", "configuration"} and (steps := host_steps.host_steps(fault)):
        return steps
    if _is_torch(fault, has_ops=has_ops):
        return torch_steps.torch_steps(fault, confidence, modes) + _replay(fault, confidence)
    if fault.kind == "nan":
        return _for_nan(modes)
    if fault.kind in _ADDRESS:
        return _for_address(confidence, has_ops=has_ops) + _replay(fault, confidence)
    return host_steps.host_steps(fault)


def _replay(fault: FaultRecord, confidence: Confidence) -> list[NextStep]:
    """Our own replay does these runs, watched, and says whether the op is confirmed."""
    if confidence in {"proven", "confirmed", "none"} or fault.kind not in {*_ADDRESS, "device_assert"}:
        return []
    why = (
        "does these runs for you in child processes, compares them with this log, and says what is confirmed"
    )
    return [NextStep(command=f"trace-analyze --replay -- {COMMAND}", why=why)]


def _is_of_driver(fault: FaultRecord) -> bool:
    """Told by the kernel log, by ROCm's runtime, or by a program that is neither MAX nor PyTorch."""
    return fault.site == "kernel_log" or fault.witness in {*driver_steps.WITNESSES, "rocm"}


def _is_torch(fault: FaultRecord, *, has_ops: bool) -> bool:
    """A PyTorch text; a device-side witness is no proof of it, and MAX shows by its ops and kernel names."""
    if fault.site == "device" and (has_ops or (fault.kernel or "").startswith("mojo_")):
        return False
    return fault.witness in torch_steps.WITNESSES or fault.site == "device"


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

"""Whether the place of a report may be believed (design.md, rule 2)."""

from __future__ import annotations

from analyzer.model import FaultRecord, TrustDecision
from analyzer.schema import Modes
from analyzer.tables.codes import by_code
from analyzer.tables.kinds import AT_CALL, HARDWARE, OF_LAUNCH, PEERS
from analyzer.traits import is_death

_ENDED_CAPTURE = 901


def decide_trust(record: FaultRecord, *, after_sticky: bool, modes: Modes) -> TrustDecision:
    """Decide whether the named place is where it happened (exact) or where it was met (late).

    Args:
        record: The fault.
        after_sticky: An earlier sticky fault of the same process is in the log: then every call of the
            process returns that error and nothing it names can be believed.
        modes: Switches seen in the inputs.
    """
    if record.site == "kernel_log":
        return _of_kernel_log(record)
    if record.site == "device":
        return TrustDecision(trust="exact", reason=f"the device itself names it ({record.witness})")
    if after_sticky:
        return TrustDecision(trust="late", reason="an earlier sticky error poisons every later call")
    if (elsewhere := _says_elsewhere(record)) is not None:
        return TrustDecision(trust="late", reason=elsewhere)
    if record.site == "launch_serialised":
        return TrustDecision(
            trust="exact",
            reason="'failed calling ... on device' is printed only by a launch that waits for the kernel",
        )
    if record.kind in AT_CALL:
        return TrustDecision(trust="exact", reason=_why_exact(record))
    if record.site == "host" and record.code is None:
        return TrustDecision(trust="exact", reason=_why_exact(record))
    if _blocking_without_hint(record, modes):
        return TrustDecision(trust="exact", reason="launches were blocking, so the call named is the launch")
    if record.code is not None and (known := by_code(record.code)) and known.site == "A":
        return TrustDecision(trust="exact", reason=f"code {record.code} is returned by the launch itself")
    return TrustDecision(trust="late", reason=_why_late(record))


def _says_elsewhere(record: FaultRecord) -> str | None:
    """The text, or the call that it came from, tells of another failure; null = it does not."""
    if record.code == _ENDED_CAPTURE:
        return "it says itself that an earlier error ended the capture"
    if record.kind in PEERS and record.code is None:
        return "it tells that something failed elsewhere, perhaps on another rank"
    if is_death(record) and record.name == "SIGKILL":
        return "somebody killed the process: who and why is not told"
    if record.site == "sync" and record.kind in OF_LAUNCH:
        return "a launch that nobody checked returned it: this call only asked"
    return None


def _of_kernel_log(record: FaultRecord) -> TrustDecision:
    """The driver knows its GPU and the process, never the kernel (formats.md 3.20)."""
    if record.kind in HARDWARE:
        return TrustDecision(trust="exact", reason="the kernel driver says which GPU failed")
    return TrustDecision(trust="late", reason="the kernel log names GPU and process, but no kernel")


def _blocking_without_hint(record: FaultRecord, modes: Modes) -> bool:
    """Launch blocking makes PyTorch's place exact; MAX's exact report has a form of its own.

    The missing MAX hint proves nothing (observed.md 20), so MAX records never pass here.
    """
    return bool(modes.launch_blocking) and record.async_hint is False and record.site == "launch"


def _why_exact(record: FaultRecord) -> str:
    if record.kind == "nan":
        return "the check read the values back and counted them"
    if record.site == "host" and is_death(record) and record.python is None and record.location is None:
        return "the process ended so; what it did then is not told"
    if record.site == "host":
        return "host code raised it at the place it names"
    return "an error of this kind is returned by the very call that causes it"


def _why_late(record: FaultRecord) -> str:
    if record.site == "launch" and record.async_hint is False:
        return "a launch call reported it: the error of earlier work, unless launches were blocking"
    if record.site == "launch" and record.kernel is None:
        return "the call that reported it met the error of earlier work"
    if record.site == "launch":
        return "a launch call met the error of earlier work: the kernel named never ran"
    if record.site == "sync":
        return "a copy or synchronisation met the error: some launch before it failed"
    return "device faults are met by a later call"

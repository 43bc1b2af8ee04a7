"""Whether the place of a report may be believed (design.md, rule 2): exact = it happened there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analyzer.incident.incident import Change, Incident, Place, Rule, SetTrust, name_of
from analyzer.model import FaultRecord, TrustDecision
from analyzer.schema import Modes, Value
from analyzer.tables.codes import by_code
from analyzer.tables.kinds import AT_CALL, HARDWARE, OF_LAUNCH, PEERS
from analyzer.traits import is_death

_ENDED_CAPTURE = 901


class Report(Value):
    """What a rule of trust looks at. ``after_sticky``: a sticky fault of its process came before.

    ``lines``: places that the reason of its role names.
    """

    record: FaultRecord
    after_sticky: bool
    modes: Modes
    lines: tuple[Place, ...] = ()


def driver_message(report: Report) -> TrustDecision | None:
    """The driver knows its GPU and the process, never the kernel (formats.md 3.20)."""
    if report.record.site != "driver_log":
        return None
    if report.record.kind in HARDWARE:
        return _exact("the kernel driver says which GPU failed")
    return _late("the kernel log names GPU and process, but no kernel")


def named_by_device(report: Report) -> TrustDecision | None:
    """The device itself is believed, also behind other errors."""
    if report.record.site != "device":
        return None
    return _exact(f"the device itself names it ({report.record.witness})")


def after_sticky_error(report: Report) -> TrustDecision | None:
    """Every call of a process whose context is lost returns that error: nothing it names can be believed."""
    if not report.after_sticky:
        return None
    reason = "an earlier sticky error poisons every later call"
    return TrustDecision(trust="late", reason=reason, lines=report.lines)


def failed_elsewhere(report: Report) -> TrustDecision | None:
    """The text, or the call that it came from, tells of another failure."""
    why = _says_elsewhere(report.record)
    return None if why is None else _late(why)


def serialised_launch(report: Report) -> TrustDecision | None:
    """MAX's exact report has a form of its own (observed.md 14)."""
    if report.record.site != "launch_serialised":
        return None
    return _exact("'failed calling ... on device' is printed only by a launch that waits for the kernel")


def returned_by_call(report: Report) -> TrustDecision | None:
    """Errors of these kinds, and those of the host without a code, come from the very call."""
    record = report.record
    own = record.site == "host" and record.code is None
    return _exact(_why_exact(record)) if own or record.kind in AT_CALL else None


def blocking_launch(report: Report) -> TrustDecision | None:
    """Launch blocking makes PyTorch's place exact.

    The missing MAX hint proves nothing (observed.md 20), so MAX records never pass here.
    """
    record = report.record
    if not report.modes.launch_blocking or record.async_hint is not False or record.site != "launch":
        return None
    return _exact("launches were blocking, so the call named is the launch")


def returned_by_launch(report: Report) -> TrustDecision | None:
    """A code that only a launch returns, at once."""
    code = report.record.code
    known = by_code(code) if code is not None else None
    if known is None or known.site != "A":
        return None
    return _exact(f"code {code} is returned by the launch itself")


def met_late(report: Report) -> TrustDecision:
    """All else is met by a later call than the one that failed."""
    return _late(_why_late(report.record))


def _rule(decide: Callable[[Report], TrustDecision | None]) -> Rule:
    """The rule that decides where no one before it has."""

    def changes(incident: Incident) -> Iterator[Change]:
        for index, record in enumerate(incident.records):
            if incident.trusts[index].rule:
                continue
            role = incident.roles[index]
            report = Report(
                record=record,
                after_sticky=role.after_sticky,
                modes=incident.known.modes,
                lines=role.lines,
            )
            if (trust := decide(report)) is not None:
                yield SetTrust(index=index, trust=trust)

    return Rule(name=name_of(decide), changes=changes)


TRUST_OF_REPORTS: tuple[Rule, ...] = tuple(
    _rule(decide)
    for decide in (
        driver_message,
        named_by_device,
        after_sticky_error,
        failed_elsewhere,
        serialised_launch,
        returned_by_call,
        blocking_launch,
        returned_by_launch,
        met_late,
    )
)


def _exact(reason: str) -> TrustDecision:
    return TrustDecision(trust="exact", reason=reason)


def _late(reason: str) -> TrustDecision:
    return TrustDecision(trust="late", reason=reason)


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

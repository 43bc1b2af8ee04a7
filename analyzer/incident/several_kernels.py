"""Reports that name several kernels: none of them is the place for sure."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.incident.incident import Change, Incident, SetTrust
from analyzer.model import FaultRecord, TrustDecision


def report_of(fault: FaultRecord) -> tuple[int, int, str, str]:
    """What records of one report have in common."""
    return fault.source, fault.line, fault.process, fault.witness


def several_kernels(incident: Incident) -> Iterator[Change]:
    """Of several kernels that one report names, none is the place for sure."""
    kernels: dict[tuple[int, int, str, str], set[str]] = {}
    for one in incident.records:
        if one.state is not None:
            kernels.setdefault(report_of(one), set()).add(one.state.kernel)
    reason = "its report names several kernels, and does not say which faulted"
    for index, one in enumerate(incident.records):
        if one.state is not None and len(kernels[report_of(one)]) > 1:
            yield SetTrust(index=index, trust=TrustDecision(trust="late", reason=reason))

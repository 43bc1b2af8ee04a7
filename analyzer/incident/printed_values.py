"""What the printed values of tensors show: faults of their own, and which launch a fault interrupted."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.incident.incident import Add, Change, Incident, SetTrust
from analyzer.model import PrintedValue, TrustDecision
from analyzer.traits import is_sticky
from analyzer.values.blocking import BLOCKING, interrupted
from analyzer.values.faults import printed_faults
from analyzer.values.launches import kernels_of


def printed_values(incident: Incident) -> Iterator[Change]:
    """NaN, Inf and bad indices in printed values are faults that no text tells."""
    for record in printed_faults(incident.known):
        yield Add(record=record, why="the printed values show it")


def read_back(incident: Incident) -> Iterator[Change]:
    """A root that was read in a printed value happened at the launch that it was read back at."""
    root = incident.root
    if root is not None and isinstance(incident.records[root].detail, PrintedValue):
        reason = "the value printer read the value back at this launch"
        yield SetTrust(index=root, trust=TrustDecision(trust="exact", reason=reason))


def interrupted_launch(incident: Incident) -> Iterator[Change]:
    """A root under blocking launches is exact where the value printer named the kernel (observed.md 32)."""
    root = incident.root
    fault = incident.fault
    if (
        root is None
        or fault is None
        or isinstance(fault.detail, PrintedValue)
        or incident.trusts[root].trust == "exact"
    ):
        return
    kernels = kernels_of(incident.known, fault.source, fault.process)
    if kernels is not None and is_sticky(fault) and interrupted(kernels, fault) is not None:
        reason = f"the last kernel named before it is the one: {BLOCKING}"
        yield SetTrust(index=root, trust=TrustDecision(trust="exact", reason=reason))

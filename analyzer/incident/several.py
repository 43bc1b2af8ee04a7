"""Reports that name several kernels: none of them is the place for sure."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.model import FaultRecord, TrustDecision


def place_of(fault: FaultRecord) -> tuple[int, int, str, str]:
    """What records of one report have in common."""
    return fault.source, fault.line, fault.process, fault.witness


def with_doubt(records: Sequence[FaultRecord], trusts: Sequence[TrustDecision]) -> list[TrustDecision]:
    """The trusts; of several kernels that one report names, none is the place for sure."""
    kernels: dict[tuple[int, int, str, str], set[str]] = {}
    for one in records:
        if one.state is not None:
            kernels.setdefault(place_of(one), set()).add(one.state.kernel)
    doubt = TrustDecision(
        trust="late", reason="its report names several kernels, and does not say which faulted"
    )
    return [
        doubt if one.state is not None and len(kernels[place_of(one)]) > 1 else trust
        for one, trust in zip(records, trusts, strict=True)
    ]

"""Ranking: the suspicion of each op and its share of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from analyzer.model import FaultRecord, OpFacts
from analyzer.schema import Reason, Suspect
from analyzer.suspects.evidence import Context, collect
from analyzer.suspects.producers import inherited
from analyzer.suspects.same_inputs import Key

LIKELY_SHARE = 0.5  # design.md rule 7: likely = over half of the weight


def rank(
    ops: Sequence[OpFacts],
    fault: FaultRecord,
    launches_before: int,
    sound: frozenset[Key] = frozenset(),
) -> list[Suspect]:
    """Rank the outer ops of the window.

    Args:
        ops: Facts, in launch order.
        fault: The root fault.
        launches_before: Launches of the process before the window (0 = nothing to compare with).
        sound: Keys of earlier launches that are proven sound (``same_inputs``).

    Returns:
        All of them, most suspect first; equal ones in launch order, the later one first, since a fault is
        met soon after it happened. Shares add up to 1.
    """
    context = Context(fault=fault, launches_before=launches_before, sound=sound)
    scored = [(op, collect(op, context)) for op in ops]
    weights = [sum(reason.weight for reason in reasons) for _, reasons in scored]
    for place, reason in inherited(ops, weights).items():
        scored[place][1].insert(0, reason)
        weights[place] += reason.weight
    total = sum(exp(weight) for weight in weights)
    order = sorted(range(len(scored)), key=lambda i: (-weights[i], -scored[i][0].launch_line))
    return [
        _suspect(place + 1, scored[i][0], scored[i][1], weights[i], exp(weights[i]) / total)
        for place, i in enumerate(order)
    ]


def named(op: OpFacts, reasons: Sequence[Reason]) -> Suspect:
    """The one op that a device-side witness or a synchronous report names."""
    return _suspect(1, op, list(reasons), sum(reason.weight for reason in reasons), 1.0)


def _suspect(place: int, op: OpFacts, reasons: list[Reason], weight: float, share: float) -> Suspect:
    return Suspect(
        rank=place,
        op=op.ref,
        weight=round(weight, 3),
        share=round(share, 4),
        reasons=reasons,
        source=list(op.source),
        stacks=len(op.detail.stacks),
        tensors=list(op.tensors),
        inner=list(op.inner),
    )

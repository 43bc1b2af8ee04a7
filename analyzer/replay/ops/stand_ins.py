"""Ops of MAX where MAX is not installed: torch does the same to shapes and indices, by other kernels."""

from __future__ import annotations

import msgspec

from analyzer.replay.ops.observe import OpFinding
from analyzer.replay.plan import Plan, PlanOp

_TOLD = "torch's kernel in place of MAX's, which is not installed in that interpreter"


def lacks_max(finding: OpFinding) -> bool:
    """Whether an attempt executed nothing because MAX is missing."""
    return not finding.sound and any("max cannot be imported" in why for _, why in finding.skipped)


def torch_for_max(plan: Plan) -> Plan:
    """The plan with MAX's own ops executed by torch; custom ops are nobody else's."""
    return msgspec.structs.replace(plan, ops=tuple(map(_by_torch, plan.ops)))


def _by_torch(op: PlanOp) -> PlanOp:
    if op.executor != "max" or op.call.startswith("custom::"):
        return op
    return msgspec.structs.replace(op, executor="torch", stand_in=_TOLD)

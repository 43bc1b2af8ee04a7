"""Files that a plan names."""

from __future__ import annotations

from pathlib import Path

import msgspec

from analyzer.replay.plan import Plan, PlanArgument, PlanOp, PlanTensor


def with_absolute_files(plan: Plan, folder: Path) -> Plan:
    """The plan with the files of its tensors as absolute paths, so that it may be moved.

    Args:
        plan: As read or built.
        folder: What a relative path is relative to.
    """
    ops = tuple(_op(op, folder) for op in plan.ops)
    return msgspec.structs.replace(plan, ops=ops)


def _op(op: PlanOp, folder: Path) -> PlanOp:
    return msgspec.structs.replace(op, arguments=tuple(_argument(one, folder) for one in op.arguments))


def _argument(argument: PlanArgument, folder: Path) -> PlanArgument:
    several = argument.tensors
    return msgspec.structs.replace(
        argument,
        tensor=_tensor(argument.tensor, folder),
        tensors=None if several is None else tuple(_tensor(one, folder) for one in several),
    )


def _tensor(tensor: PlanTensor | None, folder: Path) -> PlanTensor | None:
    if tensor is None or tensor.file is None:
        return tensor
    return msgspec.structs.replace(tensor, file=str(folder / tensor.file))

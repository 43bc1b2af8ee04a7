"""Kernels that a recorded op log tells beside PyTorch's ops: Triton launches, CUDA graphs."""

from __future__ import annotations

from analyzer.record.ops.signature import MAX_VALUE
from analyzer.replay.plan import PlanArgument, PlanOp, PlanTensor
from analyzer.replay.planning.torch_log import read_operand, text_argument
from analyzer.replay.planning.window import LoggedOp

_GRAPHS = ("cuda_graph_capture", "cuda_graph_replay")
_NO_CODE = (
    "a Triton kernel is launched by its own program: run that (`--replay -- COMMAND`), or give a function of "
    "its name that launches it (`--ops FILE`)"
)


def is_recorded_kernel(op: LoggedOp) -> bool:
    """Whether the recorder saw the launch of a Triton kernel, or a CUDA graph."""
    return not op.printed and (op.name in _GRAPHS or op.detail("grid") is not None)


def plan_kernel(op: LoggedOp, number: int) -> PlanOp:
    """A launch with what its record says of the arguments; nothing but its own program can launch it."""
    if op.name in _GRAPHS:
        graph = op.detail("graph") or "a graph"
        why = (
            f"the ops of {graph} run together, as they were captured: run the program (`--replay -- COMMAND`)"
        )
        return PlanOp(number=number, name=op.name, executor="user", call=op.name, why_not=why)
    device = op.facts.ref.device or "cuda:0"
    arguments = [
        _argument(key, value, device)
        for key, value in op.details
        if key not in {"target", "grid", "capture"} and len(value) < MAX_VALUE
    ]
    return PlanOp(
        number=number,
        name=op.name,
        executor="user",
        call=op.name,
        arguments=tuple(arguments),
        why_not=_NO_CODE,
    )


def _argument(key: str, value: str, device: str) -> PlanArgument:
    tensor: PlanTensor | None = read_operand(key, value, device)
    return PlanArgument(name=key, tensor=tensor) if tensor is not None else text_argument(key, value)

"""Ops of a MAX op log as calls of MAX itself: no other code runs MAX's kernels.

A fused op becomes the list of its parts, innermost first. Parts that only change the view (broadcast,
reshape) are left out: the operands behind them are made in the shape that the next part takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import msgspec

from analyzer.model import FusionNode
from analyzer.parse.op_name import without_dialect
from analyzer.replay.plan import PlanArgument, PlanOp, PlanTensor
from analyzer.replay.planning.max_types import Trees, plan_tensor, why_not_known
from analyzer.replay.planning.window import LoggedOp
from analyzer.schema import TensorInfo

_CUSTOM = "custom__"
_VIEWS = frozenset({"broadcast_to", "reshape", "static.broadcast_to", "static.reshape"})
_UNARY = frozenset({
    "abs", "ceil", "cos", "erf", "exp", "floor", "gelu", "log", "log1p", "negative", "not", "relu", "round",
    "rsqrt", "sigmoid", "silu", "sin", "sqrt", "tanh", "trunc",
})  # fmt: skip
_NO_TYPES = (
    "the log does not tell the types of its operands: analyse with `--ir FILE`, the <graph>.mojo file that "
    "`MODULAR_DEBUG=ir-output-dir=DIR` writes"
)
_DEVICE = "gpu:0"  # MAX's own default; a record without one is an outer one of a single device


def plan_max_op(op: LoggedOp, number: int, trees: Trees) -> PlanOp:
    """One op of a MAX op log, or one that an error text of MAX names."""
    leaves = [leaf for leaf in map(_call, op.facts.leaves) if leaf is not None]
    call = leaves[0] if len(leaves) == 1 else op.name
    plan = PlanOp(number=number, name=op.name, executor="max", call=call)
    tree = trees.of(op.name)
    if tree is not None:
        return _from_tree(plan, tree, op.facts.ref.device or _DEVICE)
    if op.facts.tensors:
        return _from_tensors(plan, op, leaves)
    return msgspec.structs.replace(plan, why_not=_NO_TYPES)


def _call(leaf: str) -> str | None:
    """``matmul`` -> ``mo.matmul``, ``custom__x`` -> ``custom::x``; null = only a change of the view."""
    if leaf.startswith(_CUSTOM):
        return f"custom::{leaf.removeprefix(_CUSTOM)}"
    plain = without_dialect(leaf)
    return None if plain in _VIEWS else f"mo.{plain}"


def _leaves(node: FusionNode) -> Iterator[FusionNode]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves(child)


def _from_tree(plan: PlanOp, tree: FusionNode, device: str) -> PlanOp:
    """Operands of each part that the part before it does not give."""
    parts = [(call, node) for node in _leaves(tree) if (call := _call(node.name)) is not None]
    infos: list[TensorInfo] = []
    made: TensorInfo | None = None
    for _, node in parts:
        infos.extend(_without(node.inputs, made))
        made = node.outputs[0] if node.outputs else made
    if not parts or not parts[-1][1].outputs:
        return msgspec.structs.replace(plan, why_not=_NO_TYPES)
    calls = tuple(call for call, _ in parts)
    sized = _Sized.read(infos, parts[-1][1].outputs, device)
    if sized.why_not is not None:
        return msgspec.structs.replace(plan, why_not=sized.why_not)
    return msgspec.structs.replace(
        plan,
        call=calls[0] if len(calls) == 1 else plan.name,
        parts=calls if len(calls) > 1 else (),
        arguments=tuple(
            PlanArgument(name=f"arg{place}", tensor=tensor)
            for place, tensor in enumerate(_with_extents(calls, sized.inputs, sized.outputs))
        ),
        outputs=sized.outputs,
        stand_in=_SEVERAL if len(calls) > 1 else None,
    )


_SEVERAL = "its parts one after the other: MAX ran them as one kernel"


def _without(inputs: Sequence[TensorInfo], made: TensorInfo | None) -> list[TensorInfo]:
    """Inputs but the first that is what the part before made (by shape: views are left out)."""
    if made is None:
        return list(inputs)
    same = [place for place, one in enumerate(inputs) if one.shape == made.shape and one.dtype == made.dtype]
    size = [place for place, one in enumerate(inputs) if _elements(one) == _elements(made)]
    fed = next(iter(same or size or range(len(inputs))), None)
    return [one for place, one in enumerate(inputs) if place != fed]


def _elements(info: TensorInfo) -> int | None:
    return None if None in info.shape else prod(size for size in info.shape if size is not None)


class _Sized(msgspec.Struct, frozen=True, kw_only=True):
    """Tensors that can be made. ``why_not``: one of them cannot."""

    inputs: tuple[PlanTensor, ...] = ()
    outputs: tuple[PlanTensor, ...] = ()
    why_not: str | None = None

    @classmethod
    def read(cls, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], device: str) -> _Sized:
        """From the types of a log."""
        found = []
        for info in (*inputs, *outputs):
            tensor = plan_tensor(info, device)
            if tensor is None:
                return cls(why_not=why_not_known(info))
            found.append(tensor)
        return cls(inputs=tuple(found[: len(inputs)]), outputs=tuple(found[len(inputs) :]))


def _from_tensors(plan: PlanOp, op: LoggedOp, leaves: Sequence[str]) -> PlanOp:
    """Types without a tree: the INFO lines of a matmul, or details on the head line (older versions)."""
    infos = op.facts.tensors
    device = op.facts.ref.device or _DEVICE
    sized = _Sized.read(
        [one for one in infos if one.role != "output"], [one for one in infos if one.role == "output"], device
    )
    if sized.why_not is not None:
        return msgspec.structs.replace(plan, why_not=sized.why_not)
    if len(leaves) > 1 and leaves[0] != "mo.matmul":
        return msgspec.structs.replace(plan, why_not=_NO_TYPES)
    names = [key for key, _ in op.details if key in {"A", "B"}] or [
        f"arg{i}" for i in range(len(sized.inputs))
    ]
    tensors = _with_extents(leaves, sized.inputs, sized.outputs)
    arguments = [
        PlanArgument(name=name, tensor=tensor) for name, tensor in zip(names, tensors, strict=False)
    ] + [
        PlanArgument(name=key, text=value)
        for key, value in op.details
        if key not in {"target", "A", "B", "C"} and "x" not in value
    ]
    whole = all(without_dialect(one) in _UNARY for one in leaves[1:])
    parts = tuple(leaves) if whole and len(leaves) > 1 else ()
    stand_in = _SEVERAL if parts else None
    if len(leaves) > 1 and not whole:
        stand_in = "its matmul alone: the types of what is fused to it are not in the log"
    return msgspec.structs.replace(
        plan,
        call=plan.name if parts else (leaves[0] if leaves else plan.call),
        parts=parts,
        arguments=tuple(arguments),
        outputs=sized.outputs,
        stand_in=stand_in,
    )


def _with_extents(
    calls: Sequence[str], inputs: Sequence[PlanTensor], outputs: Sequence[PlanTensor]
) -> list[PlanTensor]:
    """Index inputs with the size of what they index, where shapes tell it.

    ``mo.gather`` puts the index's shape in the place of one dimension of the data; which one is not in the
    log. Where several fit, or none does, the smallest dimension is safe for all of them.
    """
    indexing = bool(calls) and without_dialect(calls[0]).startswith(("gather", "scatter"))
    if not indexing or len(inputs) < 2:
        return list(inputs)
    data = inputs[0].shape
    out = outputs[0].shape if outputs and len(calls) == 1 else None
    return [
        msgspec.structs.replace(one, extent=_gathered(data, one.shape, out))
        if place and one.dtype.startswith(("int", "uint"))
        else one
        for place, one in enumerate(inputs)
    ]


def _gathered(data: tuple[int, ...], index: tuple[int, ...], out: tuple[int, ...] | None) -> int | None:
    fitting = [
        size for axis, size in enumerate(data) if out is None or data[:axis] + index + data[axis + 1 :] == out
    ]
    return min(fitting or data, default=None)

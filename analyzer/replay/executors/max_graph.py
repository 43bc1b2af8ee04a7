"""Ops of MAX by MAX itself: a graph of the one op, compiled from the recorded types.

Only MAX runs MAX's kernels. A fused op becomes a graph of its parts, which the compiler fuses again. The
first compile of a graph takes about a minute, later ones are found in MAX's cache (observed.md 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analyzer.replay.executors.call import Bound, CannotRunError, Executor, Prepared
from analyzer.replay.executors.max_calls import GraphPart, call_part
from analyzer.replay.executors.operands import word_of
from analyzer.replay.worker.plan_file import Op

_CUSTOM = "custom::"


def _handles(op: Op) -> bool:
    return op.executor == "max"


def prepare(op: Op, bound: Sequence[Bound], context: Any) -> Prepared:
    """Build and compile the graph; its launch is one execution of the model."""
    from max.engine import InferenceSession

    side = context.framework
    buffers = [one for each in bound for one in each.tensors()]
    device = side.device(op.device or _first_device(op))
    graph = _graph(op, bound, buffers, device, context)
    model = InferenceSession(devices=_devices(side, device, buffers)).load(graph)
    return Prepared(lambda: model.execute(*buffers), mutates=False)


def _first_device(op: Op) -> str | None:
    return next((one.device for each in op.arguments for one in each.all_tensors()), None)


def _devices(side: Any, device: Any, buffers: Sequence[Any]) -> list[Any]:
    """Those of op and inputs, and the cpu, on which graphs keep their shapes."""
    found = [device]
    for one in (*(buffer.device for buffer in buffers), side.device("cpu")):
        if one not in found:
            found.append(one)
    return found


def _graph(op: Op, bound: Sequence[Bound], buffers: Sequence[Any], device: Any, context: Any) -> Any:
    from max.graph import DeviceRef, Graph, TensorType

    types = [TensorType(one.dtype, tuple(one.shape), DeviceRef.from_device(one.device)) for one in buffers]
    extensions = [Path(path) for path in context.job.custom_extensions]
    with Graph("replayed", input_types=types, custom_extensions=extensions) as graph:
        values = [value.tensor for value in graph.inputs]
        if op.call.startswith(_CUSTOM):
            results = _custom(op, bound, values, device, context.framework)
        else:
            results = _sequence(op, bound, values, device, context.framework)
        graph.output(*results)
    return graph


def _custom(op: Op, bound: Sequence[Bound], values: Sequence[Any], device: Any, side: Any) -> list[Any]:
    """A custom op: its outputs are of the recorded types, what is no tensor is a parameter."""
    from max.graph import DeviceRef, TensorType, ops

    if not op.outputs:
        raise CannotRunError(f"the types of the outputs of {op.call} are not known")
    out_types = [
        TensorType(side.dtype(one.dtype), one.shape, DeviceRef.from_device(side.device(one.device)))
        for one in op.outputs
    ]
    parameters = {one.name: one.value for one in bound if not one.is_tensor and one.text is None}
    found = ops.custom(
        name=op.call[len(_CUSTOM) :],
        device=DeviceRef.from_device(device),
        values=list(values),
        out_types=out_types,
        parameters=parameters or None,
    )
    return [one.tensor for one in found]


def _sequence(op: Op, bound: Sequence[Bound], values: Sequence[Any], device: Any, side: Any) -> list[Any]:
    """The parts, innermost first, each fed by the one before."""
    left: Sequence[Any] = list(values)
    scalars = {one.name: one.value if one.text is None else one.text for one in bound if not one.is_tensor}
    calls = op.parts or (op.call,)
    results: list[Any] = []
    for place, call in enumerate(calls):
        last = place == len(calls) - 1
        part = GraphPart(
            word=word_of(call),
            operands=[*results[:1], *left],
            scalars=scalars,
            outputs=op.outputs if last else (),
            device=device,
            side=side,
        )
        results, used = call_part(part)
        left = part.operands[used:]
    return results


EXECUTOR = Executor("max", _handles, prepare)

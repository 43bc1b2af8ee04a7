"""The text of a standalone program for a custom op of MAX: a graph of the one op, with its inputs."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analyzer.replay.repro.literals import docstring

_INLINE = 4096  # elements of an input that are written as numbers
_PER_LINE = 16
_PROGRAM = '''{header}

from pathlib import Path

import numpy as np
from max.driver import CPU, {device_class}Buffer
from max.dtype import DType
from max.engine import InferenceSession
from max.graph import DeviceRef, Graph, TensorType, ops

device = {device}
where = DeviceRef.from_device(device)


def tensor(dtype, shape, data):
    """A buffer on the device with these bytes."""
    raw = Buffer.from_numpy(np.ascontiguousarray(data).reshape(-1).view(np.uint8))
    return raw.view(dtype, shape).to(device)


{load}{inputs}
inputs = [{names}]
input_types = [TensorType(one.dtype, tuple(one.shape), where) for one in inputs]
with Graph("repro", input_types=input_types, custom_extensions={extensions}) as graph:
    results = ops.custom(
        name={name!a},
        device=where,
        values=[value.tensor for value in graph.inputs],
        out_types=[{out_types}],
        parameters={parameters},
    )
    graph.output(*[one.tensor for one in results])
model = InferenceSession(devices=[device, CPU()]).load(graph)
model.execute(*inputs)
device.synchronize()
print("the op ran through: nothing failed")
'''


def write_max_program(
    path: Path, header: str, op: Any, bound: Sequence[Any], extensions: Sequence[str]
) -> None:
    """Write the program of one custom op.

    Args:
        path: Of the program; inputs that are too large for it go to the same name with ``.npz``.
        header: What it is, for its first lines.
        op: Of the plan, with its outputs.
        bound: Its arguments, as the executor was given them.
        extensions: Packages with its kernel.
    """
    numpy: Any = importlib.import_module("numpy")
    buffers = [each for one in bound for each in one.tensors()]
    on_device = any(not each.device.is_host for each in buffers)
    stored: dict[str, Any] = {}
    names = [f"input_{place}" for place in range(len(buffers))]  # those of a plan can be any text
    lines = [_input(numpy, name, each, stored) for name, each in zip(names, buffers)]  # noqa: B905
    if stored:
        numpy.savez(path.with_suffix(".npz"), **stored)
    outputs = [
        f"TensorType(getattr(DType, {one.dtype!a}), {tuple(int(size) for size in one.shape)}, where)"
        for one in op.outputs
    ]
    parameters = {one.name: one.value for one in bound if not one.is_tensor and one.text is None}
    path.write_text(
        _PROGRAM.format(
            header=docstring(header),
            device_class="Accelerator, " if on_device else "",
            device="Accelerator()" if on_device else "CPU()",
            load='stored = np.load(Path(__file__).with_suffix(".npz"))\n' if stored else "",
            inputs="\n".join(lines),
            names=", ".join(names),
            extensions=f"[{', '.join(f'Path({one!a})' for one in extensions)}]",
            name=op.call.partition("::")[2],
            out_types=", ".join(outputs),
            parameters=_parameters(parameters),
        ),
        encoding="utf-8",
    )


def _parameters(parameters: Mapping[str, Any]) -> str:
    """A dictionary literal; a number that has no word in Python is made of its text."""
    pairs = [f"{name!a}: {_value(value)}" for name, value in parameters.items()]
    return f"{{{', '.join(pairs)}}}" if pairs else "None"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return ascii(value)


def _input(numpy: Any, name: str, buffer: Any, stored: dict[str, Any]) -> str:
    """Integers are written as numbers, other values as the bytes that they are."""
    word, shape = buffer.dtype.name, tuple(int(size) for size in buffer.shape)
    host = buffer.to(importlib.import_module("max.driver").CPU())
    if word.startswith(("int", "uint")) and buffer.num_elements <= _INLINE:
        values = [str(one) for one in host.to_numpy().reshape(-1).tolist()]
        rows = [", ".join(values[at : at + _PER_LINE]) for at in range(0, len(values), _PER_LINE)]
        several = "[\n    " + ",\n    ".join(rows) + ",\n]"
        listed = several if len(rows) > 1 else f"[{', '.join(rows)}]"
        return f"{name} = tensor(DType.{word}, {shape}, np.array({listed}, dtype={word!r}))"
    uint8 = importlib.import_module("max.dtype").DType.uint8
    count = buffer.num_elements * buffer.dtype.size_in_bytes
    stored[name] = numpy.array(host.view(uint8, (count,)).to_numpy())
    return f"{name} = tensor(DType.{word}, {shape}, stored[{name!r}])"

# ruff: noqa: T201, TID253  (a user's program, started by the tests)
# mypy: ignore-errors
"""A two-layer MAX graph with a custom op that raises: ``max_raise.py raise|sound``. Runs on the CPU.

``raise``: the op raises in its host code at each call. ``sound``: the op copies.
"""

import sys
from pathlib import Path

import numpy as np
from max.driver import CPU, Buffer
from max.dtype import DType
from max.engine import InferenceSession
from max.graph import DeviceRef, Graph, TensorType, TensorValue, ops

ROWS, WIDTH = 8, 16


def layer(x: TensorValue, w: TensorValue) -> TensorValue:
    return ops.gelu(ops.matmul(x, w)) * 0.5 + x


def build(name: str) -> Graph:
    device = DeviceRef.CPU()
    types = [TensorType(DType.float32, shape, device=device) for shape in ((ROWS, WIDTH), (WIDTH, WIDTH))]
    with Graph("decoder", input_types=types, custom_extensions=[Path(__file__).parent / "kernels"]) as graph:
        x, w = (value.tensor for value in graph.inputs)
        flat = ops.reshape(layer(x, w), (ROWS * WIDTH,))
        out_type = TensorType(DType.float32, (ROWS * WIDTH,), device=device)
        table = ops.custom(name=name, device=device, values=[flat], out_types=[out_type])[0].tensor
        graph.output(layer(ops.reshape(table, (ROWS, WIDTH)), w))
    return graph


def main() -> None:
    name = {"raise": "raising_op", "sound": "copying_op"}[sys.argv[1]]
    device = CPU()
    model = InferenceSession(devices=[device]).load(build(name))
    print("loaded", flush=True)
    generator = np.random.default_rng(0)
    for step in range(3):
        x = Buffer.from_numpy(generator.standard_normal((ROWS, WIDTH), dtype=np.float32))
        w = Buffer.from_numpy(generator.standard_normal((WIDTH, WIDTH), dtype=np.float32))
        result = model.execute(x, w)[0]
        print("step", step, float(result.to_numpy().sum()), flush=True)


if __name__ == "__main__":
    main()

# ruff: noqa: ANN001, ANN002, ANN201, ANN202, T201, TID253  (a user's program, started by the tests)
# mypy: ignore-errors
"""A small MAX decoder whose paged lookup gets one bad page index: ``max_paged.py BAD_STEP STEPS``."""

import sys
from pathlib import Path

import numpy as np
from max.driver import CPU, Accelerator, Buffer
from max.dtype import DType
from max.engine import InferenceSession
from max.graph import DeviceRef, Graph, TensorType, ops

WIDTH, ROWS, LAYERS = 128, 64, 4
SIZE = ROWS * WIDTH


def norm(x, gamma):
    return x * ops.rsqrt(ops.mean(x * x, axis=-1) + 1e-6) * gamma


def layer(x, up, down, gamma):
    return x + ops.matmul(ops.silu(ops.matmul(norm(x, gamma), up)), down)


def build(device):
    def floats(*shape):
        return TensorType(DType.float32, shape, device=device)

    types = [
        floats(ROWS, WIDTH),
        TensorType(DType.int64, (SIZE,), device=device),
        floats(WIDTH, 4 * WIDTH),
        floats(4 * WIDTH, WIDTH),
        floats(WIDTH),
    ]
    with Graph("decoder", input_types=types, custom_extensions=[Path(__file__).parent / "kernels"]) as graph:
        x, pages, up, down, gamma = (value.tensor for value in graph.inputs)
        for number in range(LAYERS):
            x = layer(x, up, down, gamma)
            if number == 1:
                flat = ops.reshape(x, (SIZE,))
                found = ops.custom(
                    name="paged_lookup", device=device, values=[flat, pages], out_types=[floats(SIZE)]
                )
                x = ops.reshape(found[0].tensor, (ROWS, WIDTH))
        graph.output(ops.softmax(x))
    return graph


def main():
    bad_step, steps = int(sys.argv[1]), int(sys.argv[2])
    device = Accelerator()
    model = InferenceSession(devices=[device]).load(build(DeviceRef.from_device(device)))
    print("loaded", flush=True)
    generator = np.random.default_rng(0)

    def floats(*shape):
        values = (generator.standard_normal(shape) * 0.05).astype(np.float32)
        return Buffer.from_numpy(values).to(device)

    weights = floats(WIDTH, 4 * WIDTH), floats(4 * WIDTH, WIDTH), floats(WIDTH)
    for step in range(steps):
        pages = np.arange(SIZE, dtype=np.int64)
        if step == bad_step:
            pages[777] = 1 << 40
        result = model.execute(floats(ROWS, WIDTH), Buffer.from_numpy(pages).to(device), *weights)[0]
        print(f"step {step} logits {float(result.to(CPU()).to_numpy().sum()):.4f}", flush=True)


if __name__ == "__main__":
    main()

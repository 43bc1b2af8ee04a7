# ruff: noqa: TID253  (the measured program: torch is what it is about)
# mypy: ignore-errors
"""Times one forward step of a 12-layer decoder with and without the hook that this process was started with.

The hook's mode is on the stack; for the plain turns it is taken off, and the patched call of modules with it.
"""

import json
import os
import statistics
import struct
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812  (the usual name)
from torch import nn
from torch._C import _len_torch_dispatch_stack
from torch.utils._python_dispatch import _pop_mode, _push_mode

from analyzer.replay.hooks.config import VARIABLE, HookConfig

LAYERS, WIDTH, HEADS, BATCH, LENGTH = 12, 256, 4, 4, 64


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2)
            for part in self.qkv(self.norm_1(x)).chunk(3, -1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(1000, WIDTH), nn.Linear(WIDTH, 1000)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(ids)))


def main() -> None:
    rounds = int(sys.argv[1])
    torch.set_num_threads(1)  # processor time of this thread: other work on the machine does not count
    assert _len_torch_dispatch_stack() == 1
    hooked_call, plain_call = nn.Module.__call__, nn.Module._wrapped_call_impl
    assert hooked_call is not plain_call
    model, ids = Model().eval(), torch.randint(0, 1000, (BATCH, LENGTH))
    times = {"plain": [], "hooked": []}

    def step() -> float:
        began = time.thread_time()
        model(ids)
        return time.thread_time() - began

    with torch.no_grad():
        for turn in range(rounds + 3):
            mode = _pop_mode()
            nn.Module.__call__ = plain_call
            plain = step()
            _push_mode(mode)
            nn.Module.__call__ = hooked_call
            hooked = step()
            if turn >= 3:  # the first steps allocate
                times["plain"].append(plain)
                times["hooked"].append(hooked)
    medians = {f"{name}_s": statistics.median(values) for name, values in times.items()}
    print(json.dumps({**medians, "ops": count_ops(model, ids)}))


def count_ops(model: nn.Module, ids: torch.Tensor) -> int:
    """Ops of one step, from the hook's own counter."""
    (progress,) = Path(HookConfig(**json.loads(os.environ[VARIABLE])).journal).parent.glob("*.progress")
    before = struct.unpack_from("=q", progress.read_bytes())[0]
    with torch.no_grad():
        model(ids)
    return struct.unpack_from("=q", progress.read_bytes())[0] - before


if __name__ == "__main__":
    main()

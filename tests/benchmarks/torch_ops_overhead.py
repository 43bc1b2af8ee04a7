"""What the ring of PyTorch ops costs: one step of a 12-layer model on the CPU, with and without it.

``python -m tests.benchmarks.torch_ops_overhead`` prints the ratio of both, measured in turns in one run. The
cost is a constant time an op, so the ratio depends on what an op does: ``--tokens 1`` decodes one token.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

LAYERS, VOCABULARY = 12, 8192
WARM, TIMED = 4, 3  # steps of a round: a ring and its texts are new in the first ones


def build_step(width: int, tokens: int) -> Callable[[], Any]:
    """A forward pass of a decoder with ``LAYERS`` layers over ``tokens`` tokens."""
    import torch
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            heads = [
                part.view(*x.shape[:2], width // 64, 64).transpose(1, 2)
                for part in self.qkv(self.norm(x)).chunk(3, -1)
            ]
            mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            return x + self.mlp(self.norm(x))

    embedding = nn.Embedding(VOCABULARY, width)
    blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
    head = nn.Linear(width, VOCABULARY)
    ids = torch.randint(0, VOCABULARY, (1, tokens))

    def step() -> Any:
        with torch.no_grad():
            return head(blocks(embedding(ids))).argmax(-1)

    return step


def timed(step: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of one step: of the clock, and of the processor (which other programs disturb less)."""
    begin, begin_processor = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - begin, time.process_time() - begin_processor


def steady(step: Callable[[], Any]) -> list[tuple[float, float]]:
    """``timed`` of the steps after the first ones."""
    for _ in range(WARM):
        step()
    return [timed(step) for _ in range(TIMED)]


def measure(width: int, tokens: int, rounds: int) -> tuple[list[float], list[float], int]:
    """Medians of ``timed`` without and with the ring, and the ops of a step."""
    from analyzer.record.ops.dump import render_ring  # noqa: F401 - loaded before anything is timed
    from analyzer.record.torch_ops import torch_ops

    step = build_step(width, tokens)
    without, with_ring = [], []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ops.log"
        for _ in range(rounds):
            without += steady(step)
            with torch_ops(log):
                with_ring += steady(step)
        ops = log.read_bytes().count(b"[OP] LAUNCH ") // (WARM + TIMED)
    return (
        [median(one) for one in zip(*without, strict=True)],
        [median(one) for one in zip(*with_ring, strict=True)],
        ops,
    )


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0 = as many as it likes")
    options = parser.parse_args()
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    without, with_ring, ops = measure(options.width, options.tokens, options.rounds)
    print(f"{LAYERS} layers, width {options.width}, {options.tokens} tokens, {ops} ops a step")
    for name, plain, ring in zip(("clock", "processor"), without, with_ring, strict=True):
        each_us = (ring - plain) / ops * 1e6
        print(f"{name}: without {plain * 1e3:.2f} ms, with {ring * 1e3:.2f} ms, {each_us:.1f} us an op")
        print(f"{name}: ratio {ring / plain:.4f}")


if __name__ == "__main__":
    main()

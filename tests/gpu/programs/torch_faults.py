# ruff: noqa: ANN001, ANN201, ANN204, T201, TID253  (a user's program, started by the tests)
# mypy: ignore-errors
"""PyTorch and Triton programs that fail on a GPU: ``torch_faults.py CASE``.

Each runs a few sound steps of a small model first and goes bad in step ``BAD_STEP``; ``sound`` never does.
"""

import sys

import torch
import torch.nn.functional as F  # noqa: N812  (the usual name)
import triton
import triton.language as tl
from torch import nn

STEPS, BAD_STEP = 6, 4
WIDTH, WORDS = 128, 1000
DEVICE = "cuda"

MISALIGNED = r"""
extern "C" __global__ void rope_cache_kernel(char* p, int shift) {
    *((double*)(p + shift + 8 * threadIdx.x)) = 1.0;
}"""
TRAP = r"""
extern "C" __global__ void moe_align_kernel(int* p, int bad) {
    if (bad && threadIdx.x == 3) asm("trap;");
    p[threadIdx.x] = 1;
}"""


@triton.jit
def add_position_kernel(x_ptr, position_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    position = tl.load(position_ptr + at.to(tl.int64) * stride, mask=inside)
    tl.store(out_ptr + at, x + position, mask=inside)


@triton.jit
def wait_for_flag_kernel(flag_ptr, out_ptr):
    while tl.atomic_add(flag_ptr, 0) == 0:
        tl.atomic_add(out_ptr, 1)


@triton.jit
def topk_gate_kernel(out_ptr, bad, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    index = tl.where((at == 7) & (bad > 0), 1 << 40, at.to(tl.int64))
    tl.store(out_ptr + at, index)


@triton.jit
def moe_align_block_kernel(source_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at)
    tl.store(out_ptr + at, tl.load(source_ptr + index))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 512), nn.Linear(512, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.layers = nn.Sequential(Layer(), Layer(), Layer())

    def forward(self, ids):
        return self.head(self.layers(self.embedding(ids)))


class Work:
    """What a case does beside the model in each step."""

    def __init__(self):
        self.values = torch.randn(64, device=DEVICE)
        self.index = torch.zeros(64, dtype=torch.int64, device=DEVICE)
        self.out = torch.zeros(64, device=DEVICE)
        self.bytes = torch.zeros(4096, dtype=torch.uint8, device=DEVICE)
        self.numbers = torch.zeros(64, dtype=torch.int32, device=DEVICE)
        self.kernels = {}

    def compiled(self, source, name):
        if name not in self.kernels:
            self.kernels[name] = torch.cuda._compile_kernel(source, name)
        return self.kernels[name]

    def wild_pointer(self, bad):
        stride = 1 << 34 if bad else 1
        add_position_kernel[(1,)](self.values, self.values, self.out, 64, stride, BLOCK=64)

    def misaligned(self, bad):
        self.compiled(MISALIGNED, "rope_cache_kernel")((1, 1, 1), (64, 1, 1), (self.bytes, int(bad)))

    def trap(self, bad):
        self.compiled(TRAP, "moe_align_kernel")((1, 1, 1), (64, 1, 1), (self.numbers, int(bad)))

    def endless(self, bad):
        self.numbers.fill_(0 if bad else 1)
        wait_for_flag_kernel[(1,)](self.numbers, self.numbers[8:])

    def messenger(self, bad):
        topk_gate_kernel[(1,)](self.index, int(bad), BLOCK=64)
        moe_align_block_kernel[(1,)](self.values, self.index, self.out, BLOCK=64)

    def out_of_memory(self, bad):
        size_bytes = (1 << 50) if bad else (1 << 20)
        self.bytes = torch.empty(size_bytes, dtype=torch.uint8, device=DEVICE)

    def embedding(self, bad):
        """The bad id is given to the model itself."""

    sound = embedding


def main():
    case = sys.argv[1]
    torch.manual_seed(0)
    model, work = Model().to(DEVICE).eval(), Work()
    for step in range(STEPS):
        bad = step == BAD_STEP
        ids = torch.randint(0, WORDS, (4, 64), device=DEVICE)
        if bad and case == "embedding":
            ids[2, 17] = WORDS
        with torch.no_grad():
            logits = model(ids)
        getattr(work, case)(bad)
        print(f"step {step} dispatched", flush=True)
    print(logits.argmax(-1).sum().item(), work.out.sum().item(), flush=True)


if __name__ == "__main__":
    main()

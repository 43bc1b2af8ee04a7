# ruff: noqa: ANN001, ANN002, ANN201, ANN202, ANN204, T201, TID253, S311, RET504  (a user's program)
# mypy: ignore-errors
"""A small model with one seeded fault: ``program.py SEED KIND TRUTH.json``; the rest follows from the seed.

The truth (guilty names, line, step) is written before anything fails. ``kinds.py`` lists what there is.
"""

import inspect
import json
import random
import sys
import threading

import torch
import torch.nn.functional as F  # noqa: N812  (the usual name)
import triton
import triton.language as tl
from torch import nn

SEED, KIND = int(sys.argv[1]), sys.argv[2]
CHOICE = random.Random(f"{SEED}-{KIND}")
LAYERS, WIDTH = CHOICE.randint(1, 5), CHOICE.choice([64, 128, 256])
STEPS = CHOICE.randint(3, 16)
BAD = CHOICE.randint(1, STEPS - 1)
PLACE = CHOICE.randrange(LAYERS)
EVERY = CHOICE.choice([1, 1, 2, 4])  # the host reads a result back every so many steps
DEVICE = "cuda"
WORDS = 300
ROWS = 40
FAR = 1 << 26

SOURCES = {
    "trap": 'extern "C" __global__ void block_reduce_kernel(int* p, int bad)'
    '{ if (bad && threadIdx.x == 3) asm("trap;"); p[threadIdx.x] = 1; }',
    "wild_store": 'extern "C" __global__ void paged_store_kernel(float* p, int far)'
    "{ p[(long long)threadIdx.x * far * 4096] = 1.0f; }",
    "misaligned": 'extern "C" __global__ void rope_cache_kernel(char* p, int shift)'
    "{ *((double*)(p + shift + 8 * threadIdx.x)) = 1.0; }",
}
KERNELS = {}


def kernel(name):
    if name not in KERNELS:
        text = SOURCES[name]
        symbol = text.split("void ")[1].split("(")[0]
        KERNELS[name] = torch.cuda._compile_kernel(text, symbol)
    return KERNELS[name]


def guilty(*names, instance=True):
    """Write the truth; called on the line above the guilty call."""
    line = inspect.currentframe().f_back.f_lineno + 1
    truth = {
        "seed": SEED,
        "kind": KIND,
        "step": BAD,
        "names": list(names),
        "line": line,
        "instance": instance,
    }
    with open(sys.argv[3], "w") as file:  # noqa: PTH123
        json.dump(truth, file)


@triton.jit
def page_copy_kernel(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at.to(tl.int64) * stride, mask=inside), mask=inside)


@triton.jit
def expert_fetch_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    index = tl.load(index_ptr + at, mask=inside)
    tl.store(out_ptr + at, tl.load(x_ptr + index, mask=inside), mask=inside)


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) * 0.999, mask=inside)


@triton.jit
def checked_kernel(x_ptr, out_ptr, limit, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.device_assert(at < limit, "slot out of range", mask=inside)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside), mask=inside)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.down(F.gelu(self.up(self.norm(x))))
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x.contiguous(), out, x.numel(), BLOCK=256)
        return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.table = nn.Embedding(500, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.bag = nn.EmbeddingBag(WORDS, WIDTH)
        self.head = nn.Linear(WIDTH, 500)

    def forward(self, ids, bad):
        x = self.words(ids)
        for place, block in enumerate(self.blocks):
            x = block(x)
            if place == PLACE:
                x = globals()[KIND](self, x, bad)
        return self.head(x)


def index(bad, limit, count=ROWS, value=None):
    found = torch.arange(count, device=DEVICE) % limit
    if bad:
        found[count // 3] = limit + 7 if value is None else value
    return found


def sound(_net, x, _bad):
    guilty()
    return x


def embedding(net, x, bad):
    i = index(bad, WORDS)
    guilty("aten::embedding")
    y = net.table(i)
    return x + y.mean()


def embedding_negative(net, x, bad):
    i = index(bad, WORDS, value=-3)
    guilty("aten::embedding")
    y = net.table(i)
    return x + y.mean()


def embedding_bag(net, x, bad):
    i = index(bad, WORDS).view(4, -1)
    guilty("aten::_embedding_bag", "aten::embedding_bag", "aten::_embedding_bag_forward_only")
    y = net.bag(i)
    return x + y.mean()


def gather(_net, x, bad):
    i = index(bad, WIDTH).expand(*x.shape[:2], ROWS)
    guilty("aten::gather")
    y = x.gather(-1, i)
    return x + y.mean()


def gather_last(_net, x, bad):
    i = index(bad, WIDTH, value=WIDTH).expand(*x.shape[:2], ROWS)
    guilty("aten::gather")
    y = torch.gather(x, 2, i)
    return x + y.mean()


def scatter(_net, x, bad):
    i = index(bad, WIDTH).expand(*x.shape[:2], ROWS)
    z = torch.ones(*x.shape[:2], ROWS, device=DEVICE)
    guilty("aten::scatter", "aten::scatter_")
    y = x.scatter(-1, i, z)
    return y


def scatter_add(_net, x, bad):
    i = index(bad, WIDTH).expand(*x.shape[:2], ROWS)
    z = torch.ones(*x.shape[:2], ROWS, device=DEVICE)
    guilty("aten::scatter_add", "aten::scatter_add_")
    y = x.clone().scatter_add_(-1, i, z)
    return y


def index_select(net, x, bad):
    i = index(bad, WORDS)
    guilty("aten::index_select")
    y = torch.index_select(net.table.weight, 0, i)
    return x + y.mean()


def index_get(net, x, bad):
    i = index(bad, WORDS)
    guilty("aten::index")
    y = net.table.weight[i]
    return x + y.mean()


def index_put(_net, x, bad):
    i, z, v = index(bad, WIDTH), torch.zeros(WIDTH, device=DEVICE), torch.ones(ROWS, device=DEVICE)
    guilty("aten::index_put_", "aten::_index_put_impl_")
    z[i] = v
    return x + z


def index_add(_net, x, bad):
    i, z, v = index(bad, WIDTH), torch.zeros(WIDTH, device=DEVICE), torch.ones(ROWS, device=DEVICE)
    guilty("aten::index_add_", "aten::index_add")
    z.index_add_(0, i, v)
    return x + z


def index_copy(_net, x, bad):
    i, z, v = index(bad, WIDTH), torch.zeros(WIDTH, device=DEVICE), torch.ones(ROWS, device=DEVICE)
    guilty("aten::index_copy_", "aten::index_copy")
    z.index_copy_(0, i, v)
    return x + z


def take(_net, x, bad):
    i = index(bad, x.numel())
    guilty("aten::take")
    y = torch.take(x, i)
    return x + y.mean()


def cross_entropy(_net, x, bad):
    i = index(bad, WIDTH, x.shape[0] * x.shape[1])
    guilty("aten::nll_loss_forward", "aten::nll_loss", "aten::cross_entropy_loss")
    y = F.cross_entropy(x.flatten(0, 1), i)
    return x + y


def multinomial(_net, x, bad):
    p = torch.full((WORDS,), -1.0 if bad else 1.0, device=DEVICE)
    guilty("aten::multinomial", "aten::_assert_async")
    y = torch.multinomial(p, 1)
    return x + y.float().mean() * 0


def one_assert(_net, x, bad):
    t = torch.tensor(not bad, device=DEVICE)
    guilty("aten::_assert_async")
    torch._assert_async(t)
    return x


def triton_load(_net, x, bad):
    out = torch.empty_like(x)
    guilty("page_copy_kernel")
    page_copy_kernel[(triton.cdiv(x.numel(), 256),)](
        x.contiguous(), out, x.numel(), FAR if bad else 1, BLOCK=256
    )
    return out


def triton_index(_net, x, bad):
    i = index(bad, x.numel(), 256, 1 << 40)
    out = torch.empty(256, device=DEVICE)
    guilty("expert_fetch_kernel")
    expert_fetch_kernel[(1,)](x.contiguous(), i, out, 256, BLOCK=256)
    return x + out.mean()


def triton_assert(_net, x, bad):
    out = torch.empty_like(x)
    guilty("checked_kernel")
    checked_kernel[(triton.cdiv(x.numel(), 256),)](
        x.contiguous(), out, x.numel() // 2 if bad else x.numel(), x.numel(), BLOCK=256, debug=True
    )
    return out


def trap(_net, x, bad):
    b = torch.zeros(4096, dtype=torch.int32, device=DEVICE)
    guilty("block_reduce_kernel")
    kernel("trap")((1, 1, 1), (64, 1, 1), (b, int(bad)))
    return x + b[0].float() * 0


def wild_store(_net, x, bad):
    b = torch.zeros(4096, device=DEVICE)
    guilty("paged_store_kernel")
    kernel("wild_store")((1, 1, 1), (64, 1, 1), (b, 1 << 28 if bad else 0))
    return x


def misaligned(_net, x, bad):
    b = torch.zeros(4096, device=DEVICE)
    guilty("rope_cache_kernel")
    kernel("misaligned")((1, 1, 1), (64, 1, 1), (b, 3 if bad else 0))
    return x


@torch.library.custom_op("engine::paged_store", mutates_args=("buffer",))
def paged_store(buffer: torch.Tensor, far: int) -> None:
    kernel("wild_store")((1, 1, 1), (64, 1, 1), (buffer, far))


def custom_op(_net, x, bad):
    b = torch.zeros(4096, device=DEVICE)
    guilty("engine::paged_store", "paged_store_kernel")
    torch.ops.engine.paged_store(b, 1 << 28 if bad else 0)
    return x


def side_stream(net, x, bad):
    side, i = torch.cuda.Stream(), index(bad, WORDS)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        guilty("aten::embedding")
        y = net.table(i)
    z = F.gelu(x @ x.transpose(-1, -2))
    torch.cuda.current_stream().wait_stream(side)
    return x + y.mean() + z.mean() * 0


def other_thread(net, x, bad):
    i, found = index(bad, WORDS), []
    torch.cuda.current_stream().synchronize()

    def look_up():
        with torch.no_grad():
            guilty("aten::embedding")
            found.append(net.table(i))

    thread = threading.Thread(target=look_up)
    thread.start()
    thread.join()
    return x + found[0].mean()


GRAPH = {}


def graph(net, x, bad):
    if not GRAPH:
        given, warm = torch.arange(ROWS, device=DEVICE), torch.cuda.Stream()
        warm.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm):
            net.table(given).mean()
        torch.cuda.current_stream().wait_stream(warm)
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made):
            out = F.relu(F.relu(net.table(given)) @ net.table.weight.T).mean()
        GRAPH.update(made=made, given=given, out=out)
    GRAPH["given"].copy_(index(bad, WORDS))
    guilty("aten::embedding")
    GRAPH["made"].replay()
    return x + GRAPH["out"]


def graph_triton(_net, x, bad):
    if not GRAPH:
        given, out = index(bad=False, limit=4096, count=256), torch.empty(256, device=DEVICE)
        data = torch.zeros(4096, device=DEVICE)
        expert_fetch_kernel[(1,)](data, given, out, 256, BLOCK=256)
        torch.cuda.synchronize()
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made):
            half = data * 0.5
            expert_fetch_kernel[(1,)](half, given, out, 256, BLOCK=256)
            total = out.sum()
        GRAPH.update(made=made, given=given, out=total)
    GRAPH["given"].copy_(index(bad, 4096, 256, 1 << 40))
    guilty("expert_fetch_kernel")
    GRAPH["made"].replay()
    return x + GRAPH["out"] * 0


def oom(_net, x, bad):
    guilty("aten::empty")
    torch.empty((400 << 30) if bad else 8, dtype=torch.uint8, device=DEVICE)
    return x


def shape(_net, x, bad):
    z = torch.zeros(WIDTH + int(bad), device=DEVICE)
    guilty("aten::add")
    return x + z


def main():
    torch.manual_seed(SEED)
    net = Net().to(DEVICE).eval()
    ids = torch.randint(0, 500, (2, 24), device=DEVICE)
    for step in range(STEPS):
        with torch.no_grad():
            out = net(ids, step == BAD)
        if step % EVERY == EVERY - 1 or step == STEPS - 1:
            print(f"step {step} value {out.float().mean().item():.4f}", flush=True)
    torch.cuda.synchronize()


main()

"""Op families: what kind of work an op does, told from its name."""

from __future__ import annotations

from collections.abc import Iterable

# In order: the first family that has a word of the name takes the leaf. Words are compared with the parts
# of the name between separators, so that "add" does not hide in "padding".
_TABLE = """
collective    allreduce allgather reducescatter alltoall nccl distributed
paged_kv      paged page pages kv cache kvcache
attention     attention attn mha flash sdpa mla gqa
embedding     embedding embed
moe           moe expert experts route router gate
sampling      topk top argmax argmin sample sampling multinomial penalties sort argsort
index         gather scatter index select take lookup put nonzero where masked
matmul        matmul gemm mm bmm addmm linear cublas dot grouped batchmatmul
conv          conv conv1d conv2d conv3d convolution
softmax       softmax logsoftmax
norm          norm rmsnorm layernorm rms layer
quantization  quant quantize dequant dequantize fp8 fp4 int4 int8 q4
rope          rope rotary
reduction     reduce mean sum max min prod cumsum any all
layout        view reshape transpose broadcast slice concat split pad tile permute static
copy          copy cast transfer memcpy
nan_domain    log log1p sqrt rsqrt div pow acos asin atanh reciprocal
elementwise   add sub mul gelu silu relu tanh sigmoid exp neg abs elementwise foreach mogg erf sin cos
elementwise   round floor ceil equal greater less not and or xor clamp
"""
_WORDS = tuple(
    (family, frozenset(words)) for family, *words in (row.split() for row in _TABLE.strip().splitlines())
)
CUSTOM = "custom"
_PYTORCH = frozenset({"aten", "prims", "prim", "inductor", "higher_order", "c10d", "_c10d_functional"})
UNKNOWN = "unknown"


def leaf_families(leaf: str) -> tuple[str, ...]:
    """Families of one leaf; a custom op has ``custom`` first and what its name says after it."""
    custom = leaf.startswith("custom__") or is_of_others(leaf)
    words = set(leaf.removeprefix("custom__").lower().replace(".", "_").replace(":", "_").split("_"))
    named = [family for family, known in _WORDS if words & known]
    if custom:
        return (CUSTOM, *named[:1])
    return tuple(named[:1]) or (UNKNOWN,)


def is_of_others(leaf: str) -> bool:
    """Whether an op of PyTorch is of a library or of the program, not of PyTorch itself."""
    namespace, found, _ = leaf.partition("::")
    return bool(found) and namespace not in _PYTORCH


def families(leaves: Iterable[str]) -> tuple[str, ...]:
    """Distinct families of an op's leaves, in order."""
    return tuple(dict.fromkeys(family for leaf in leaves for family in leaf_families(leaf)))

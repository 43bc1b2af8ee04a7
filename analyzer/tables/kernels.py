"""Which ops launch a kernel, by a word of its symbol or of the source file of an assert in it, as data.

PyTorch's kernels are shared between ops and hardly ever called like them. The first row with a word that
stands in the symbol or the file counts. Names of ops without their namespace; a trailing ``*`` = any rest.
"""

from __future__ import annotations

from analyzer.vocabulary import Value

_LOOKUP = ("embedding", "index_select", "index", "_unsafe_index", "gather", "take")
_GATHER = ("gather", "scatter*", "take_along_dim")
_INDEX_PUT = ("index_put*", "_index_put_impl_", "_unsafe_index_put", "index", "_unsafe_index", "index_copy*",
              "index_fill*", "take", "put*", "masked_scatter*", "masked_fill*")  # fmt: skip
_NLL = ("nll_loss*", "cross_entropy_loss", "nll_loss_nd")


class KernelOps(Value):
    """``words``: of symbols and of source files (``ScatterGatherKernel``); ``ops``: who launches it."""

    words: tuple[str, ...]
    ops: tuple[str, ...]


def _row(words: str, *ops: str) -> KernelOps:
    return KernelOps(words=tuple(words.split()), ops=ops)


KERNEL_OPS: tuple[KernelOps, ...] = (
    _row("EmbeddingBag", "_embedding_bag*", "embedding_bag*"),
    _row("embedding_backward embedding_dense_backward EmbeddingBackwardKernel", "embedding*backward*"),
    _row("renorm_kernel Embedding.cu", "embedding*"),
    _row("vectorized_gather IndexKernelUtils", *_LOOKUP),
    _row("ScatterGatherKernel scatter_gather", *_GATHER),
    _row("indexSelect", "index_select", "embedding"),
    _row("indexFunc indexAdd", "index_add*", "index_reduce*", "index_copy*"),
    _row("indexing_backward", "index_put*", "_index_put_impl_", "embedding*backward*"),
    _row("index_elementwise index_put_kernel index_kernel IndexKernel index_copy_kernel index_fill_kernel",
         *_INDEX_PUT),
    _row("Indexing.cu", "index_add*", "index_select", "index_reduce*", "index_copy*", *_INDEX_PUT),
    _row("nll_loss NLLLoss nllLoss Loss.cu", *_NLL),
    _row("MultiMargin MultiLabelMargin", "multi*margin_loss*"),
    _row("sampleMultinomial MultinomialKernel multinomial", "multinomial"),
    _row("TensorCompare _assert_async", "_assert_async*", "_functional_assert_async*", "_assert_scalar"),
    _row("UnfoldBackward", "unfold_backward"),
    _row("bernoulli Distribution", "bernoulli*", "multinomial", "binomial", "poisson"),
    _row("ctc_loss LossCTC", "_ctc_loss*", "ctc_loss*"),
    _row("bincount SummaryOps kernelHistogram", "bincount", "histc*"),
    _row("repeat_interleave Repeat.cu compute_cuda_kernel", "repeat_interleave*"),
    _row("searchsorted Bucketization", "searchsorted", "bucketize"),
    _row("gather_scatter.mojo", "gather*", "scatter*", "mo.gather*", "mo.scatter*"),
)  # fmt: skip


def ops_of_kernel(symbol: str | None, file: str | None = None) -> tuple[str, ...]:
    """Names of the ops that launch a kernel; empty = the table does not know it."""
    told = f"{symbol or ''} {file or ''}"
    return next((row.ops for row in KERNEL_OPS if any(word in told for word in row.words)), ())


def is_launched_by(name: str, ops: tuple[str, ...]) -> bool:
    """Whether the name of an op, without its namespace, is one of ``ops``."""
    return any(
        name.startswith(one.removesuffix("*")) if one.endswith("*") else _matches(name, one) for one in ops
    )


def _matches(name: str, pattern: str) -> bool:
    first, star, last = pattern.partition("*")
    return name.startswith(first) and last in name if star else name == pattern


# Frames and helpers that stand where a kernel's name could: of Python's import system, of generated modules.
_NO_KERNEL = frozenset(
    {"<module>", "call", "run", "main", "launch", "wrapper", "_call_with_frames_removed", "__call__"}
)


def names_kernel(file: str, function: str) -> bool:
    """Whether a place that a device-side text names can be a kernel; code without a file is none."""
    return not file.startswith("<") and function not in _NO_KERNEL

"""Which integer operand of an op indexes which other operand, as data.

Of PyTorch's schemas: the names of the arguments are those of the op log (``record.ops.signature``).
"""

from __future__ import annotations

from analyzer.vocabulary import Value


class Indexing(Value):
    """``index`` holds places along ``dim`` of ``table``.

    ``index``: of a list (``indices.0``) its name; place N of it indexes dimension N. ``dim``: a number, or
    the argument that tells it; null = all elements. ``negative``: counts from the end too. ``ignored``: the
    argument with a value that stands for nothing.
    """

    ops: tuple[str, ...]
    index: str
    table: str
    dim: int | str | None
    negative: bool = False
    ignored: str | None = None


INDEXING: tuple[Indexing, ...] = (
    Indexing(
        ops=("embedding", "embedding_renorm_", "_embedding_bag", "embedding_bag"),
        index="indices", table="weight", dim=0,
    ),
    Indexing(ops=("_embedding_bag_forward_only",), index="indices", table="weight", dim=0),
    Indexing(ops=("gather", "index_select", "index_add", "index_add_", "index_copy", "index_copy_",
                  "index_fill", "index_fill_", "index_reduce", "index_reduce_", "scatter", "scatter_",
                  "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"),
             index="index", table="self", dim="dim"),
    Indexing(ops=("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index",
                  "_unsafe_index_put"),
             index="indices", table="self", dim="place", negative=True),
    Indexing(ops=("take", "put", "put_"), index="index", table="self", dim=None, negative=True),
    Indexing(ops=("nll_loss_forward", "nll_loss", "nll_loss_nd", "nll_loss2d", "nll_loss2d_forward",
                  "cross_entropy_loss"),
             index="target", table="self", dim=-2, ignored="ignore_index"),
)  # fmt: skip
BY_OP: dict[str, Indexing] = {op: row for row in INDEXING for op in row.ops}
IGNORED_INDEX = -100  # PyTorch's default of ``ignore_index``

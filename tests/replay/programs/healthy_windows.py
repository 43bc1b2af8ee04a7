# ruff: noqa: TID253  (a user's program, started by the tests)
# mypy: ignore-errors
"""Sound windows rich in lookups: ``healthy_windows.py OPS_LOG WINDOWS``; the log has types, no values."""

import random
import sys

import torch

from analyzer.record.torch_ops import torch_ops


def window(sizes: random.Random) -> None:
    """Embedding, top-k, gather, scatter, index, paged lookup, as a decoder with a paged cache does them."""
    batch, width, rows, k = (
        sizes.randint(1, 9),
        sizes.choice([8, 16, 33]),
        sizes.randint(17, 300),
        sizes.randint(1, 7),
    )
    pages, page = sizes.randint(2, 40), sizes.choice([1, 4, 16])
    table = torch.randn(rows, width)
    ids = torch.randint(rows, (batch, sizes.randint(1, 12)))
    hidden = torch.nn.functional.embedding(ids, table)
    logits = torch.matmul(hidden, table.t())
    values, places = torch.topk(logits, k, dim=-1)
    taken = torch.gather(logits, -1, places)
    counts = torch.zeros(batch, ids.shape[1], rows).scatter_(-1, places, 1.0)
    added = torch.zeros(rows, width).index_add_(0, ids.flatten(), hidden.flatten(0, 1))
    summed = torch.zeros(batch, ids.shape[1], rows).scatter_add(-1, places, taken)
    cache = torch.randn(pages, page, width)
    slots = torch.randint(pages, (batch, 3))
    keys = cache[slots]
    picked = torch.index_select(added, 0, places.flatten())
    cache.index_put_((slots[:, 0], torch.zeros(batch, dtype=torch.int64)), hidden[:, 0])
    cache.index_copy_(0, torch.randperm(pages)[:1], keys[:1, 0])
    torch.take_along_dim(values, places.argsort(-1), -1)
    torch.softmax(values + summed.sum() + counts.mean() + picked.sum(), -1).cumsum(-1).argmax(-1)
    torch.nn.functional.one_hot(ids, rows).bincount() if ids.ndim == 1 else torch.bincount(ids.flatten())
    torch.masked_select(logits, logits > 0)
    torch.searchsorted(torch.arange(rows), ids)


def main() -> None:
    torch.manual_seed(0)
    with torch_ops(sys.argv[1], ring=0, inputs="none"), torch.no_grad():
        for number in range(int(sys.argv[2])):
            window(random.Random(number))  # noqa: S311  (shapes, no secret)


if __name__ == "__main__":
    main()

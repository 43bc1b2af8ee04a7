"""Families that address memory by value: gather, scatter, embedding, paged lookup, top-k, sort."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.executors.family_parts import (
    Call,
    Operand,
    Part,
    indexed_axis,
    is_index,
    split_index,
)


def _along(part: Part, data: Any, index: Any, axis: int) -> Any:
    """``data`` at ``index`` along a dimension: the index's shape takes the place of that dimension.

    MAX counts negative indices from the end; torch's ``index_select`` refuses them.
    """
    axis %= max(data.dim(), 1)
    places = _from_end(index, data.shape[axis]) if part.of_max else index
    taken = part.torch.index_select(data, axis, places.reshape(-1).long())
    return taken.reshape(*data.shape[:axis], *index.shape, *data.shape[axis + 1 :])


def _from_end(index: Any, size: int) -> Any:
    """Indices of MAX as torch takes them; what is out of range stays so."""
    return index + (index < 0).to(index.dtype) * size


def _take(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """``mo.gather``, ``index_select``, ``embedding``."""
    data, index, _ = split_index(part, operands[:2])
    return _along(part, data, index.value, indexed_axis(part, data, index)), 2


def _embedding(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    data, index, _ = split_index(part, operands[:2])
    return part.torch.nn.functional.embedding(index.value, data), 2


def _gather(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """MAX's takes slices; torch's takes elements, with an index of the data's rank."""
    data, index, _ = split_index(part, operands[:2])
    if part.of_max or index.value.dim() != data.dim():
        return _take(part, operands)
    return part.torch.gather(data, indexed_axis(part, data, index), index.value.long()), 2


def _flat(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    data, index, _ = split_index(part, operands[:2])
    return part.torch.take(data, index.value.long()), 2


def _advanced(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """``data[i, j]``: all further integer operands are indices."""
    data, first, _ = split_index(part, operands[:2])
    more = [one.value for one in operands[2:] if is_index(one)]
    places = [one.long() for one in (first.value, *more)]
    return data[tuple(places)], 2 + len(more)


def _gather_nd(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """The last dimension of the index holds one position."""
    data, index, _ = split_index(part, operands[:2])
    return data[_positions(index.value)], 2


def _positions(index: Any) -> tuple[Any, ...]:
    return tuple(one.long() for one in index.unbind(-1))


def _scatter(reduce: str | None) -> Call:
    """Elements of the updates to places along a dimension."""

    def call(part: Part, operands: list[Operand]) -> tuple[Any, int]:
        data, index, rest = split_index(part, operands[:3])
        updates = _updates(part, rest)
        axis = indexed_axis(part, data, index)
        size = data.shape[axis] if data.dim() else 1
        places = (_from_end(index.value, size) if part.of_max else index.value).long()
        if places.dim() != data.dim():  # whole slices, as ``index_add`` and ``index_copy`` take them
            whole = part.torch.index_add if reduce == "sum" else part.torch.index_copy
            return whole(data, axis, places.reshape(-1), updates), 3
        if reduce is None:
            return part.torch.scatter(data, axis, places, updates), 3
        return part.torch.scatter_reduce(data, axis, places, updates, reduce), 3

    return call


def _updates(part: Part, rest: list[Any]) -> Any:
    if not rest:
        raise CannotRunError(f"{part.word} needs updates, the plan has none")
    return rest[0]


def _scatter_nd(*, add: bool) -> Call:
    def call(part: Part, operands: list[Operand]) -> tuple[Any, int]:
        data, index, rest = split_index(part, operands[:3])
        places = _positions(index.value)
        return part.torch.index_put(data, places, _updates(part, rest), accumulate=add), 3

    return call


def _index_put(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """``data[i] = updates``; there can be several indices."""
    data, first, rest = split_index(part, operands)
    more = [one.value for one in operands if is_index(one) and one is not first and one.value is not data]
    updates = [one for one in rest if all(one is not each for each in more)]
    places = tuple(one.long() for one in (first.value, *more))
    return part.torch.index_put(data, places, _updates(part, updates)), len(operands)


def _paged_lookup(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """Each page table looks up pages: of every tensor with as many pages as its extent, else of the first."""
    tables = [one for one in operands if is_index(one) and one.extent is not None]
    tables = tables or [one for one in operands if is_index(one)][:1]
    pages = [one.value for one in operands if all(one is not table for table in tables) and one.value.dim()]
    results = [
        _along(part, data, table.value, 0)
        for table in tables
        for data in [one for one in pages if one.shape[0] == table.extent] or pages[:1]
    ]
    if not results:
        raise CannotRunError(f"{part.word} needs pages and a page table")
    return results, len(operands)


def _top_k(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """As many as the result has along the axis."""
    value, axis, shape = operands[0].value, part.axis(), part.shape()
    count = part.number("k", default=shape[axis] if shape else 1)
    return part.torch.topk(value, int(count), axis), 1


def _sort(name: str) -> Call:
    def call(part: Part, operands: list[Operand]) -> tuple[Any, int]:
        return getattr(part.torch, name)(operands[0].value, dim=part.axis()), 1

    return call


_NAMES: Mapping[Call, tuple[str, ...]] = {
    _take: ("index_select",),
    _embedding: ("embedding",),
    _gather: ("gather",),
    _flat: ("take",),
    _advanced: ("index", "unsafe_index"),
    _gather_nd: ("gather_nd",),
    _scatter(None): ("scatter", "index_copy"),
    _scatter("sum"): ("scatter_add", "index_add"),
    _scatter("prod"): ("scatter_mul",),
    _scatter("amax"): ("scatter_max",),
    _scatter("amin"): ("scatter_min",),
    _scatter_nd(add=False): ("scatter_nd",),
    _scatter_nd(add=True): ("scatter_nd_add",),
    _index_put: ("index_put", "unsafe_index_put"),
    _paged_lookup: ("paged_lookup", "paged_gather", "paged_attention", "paged_kv", "kv_cache_lookup"),
    _top_k: ("topk", "top_k"),
    _sort("sort"): ("sort",),
    _sort("argsort"): ("argsort", "arg_sort"),
}
INDEX: Mapping[str, Call] = {word: call for call, words in _NAMES.items() for word in words}

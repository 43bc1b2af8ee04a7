"""Which argument of an op indexes which dimension of which other one: the extent that its values must obey.

By the op's name without namespace, variant marks (a leading or trailing ``_``) and the forms of the same
thing; by the argument names of its schema. Booleans (masks) index nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import msgspec

from analyzer.replay.planning.captures import read_whole

Shape = tuple[int, ...]
Extents = dict[str, int]


class Operands(msgspec.Struct, frozen=True, kw_only=True):
    """Operands by name (those of lists as ``indices.0``), and texts of the others."""

    shapes: Mapping[str, Shape]
    dtypes: Mapping[str, str]
    texts: Mapping[str, str]

    def extent(self, name: str, dim: int) -> int | None:
        """Of one dimension, null where the tensor or the dimension is not there."""
        shape = self.shapes.get(name)
        if shape is None or not -len(shape) <= dim < max(1, len(shape)):
            return None
        return shape[dim] if shape else 1  # a scalar tensor is indexed like one of one element

    def number(self, name: str) -> int | None:
        """An integer argument, null where it is not there."""
        return read_whole(self.texts.get(name))


def find_extents(call: str, operands: Operands) -> Extents:
    """Extents by operand name.

    Args:
        call: ``aten::index_select``; an op that is not known indexes nothing that can be told.
        operands: Of the call.
    """
    rule = _RULES.get(_plain(call))
    found = rule(operands) if rule else {}
    return {name: size for name, size in found.items() if size is not None and _is_index(operands, name)}


def _plain(call: str) -> str:
    return call.rpartition("::")[2].strip("_").removeprefix("unsafe_").removesuffix("_impl")


def _is_index(operands: Operands, name: str) -> bool:
    return operands.dtypes.get(name, "").startswith(("int", "uint"))


_Found = dict[str, int | None]
_Rule = Callable[[Operands], _Found]


def _along_dim(operands: Operands) -> _Found:
    """``gather``, ``scatter``, ``index_select`` and their kin."""
    dim = operands.number("dim")
    return {"index": operands.extent("self", dim) if dim is not None else None}


def _flat(operands: Operands) -> _Found:
    """``take``, ``put``: the tensor as one row."""
    shape = operands.shapes.get("self")
    return {"index": prod(shape) if shape is not None else None}


def _along_dim_or_flat(operands: Operands) -> _Found:
    dim, shape = operands.number("dim"), operands.shapes.get("self")
    flat = prod(shape) if shape is not None else None
    return {"indices": operands.extent("self", dim) if dim is not None else flat}


def _rows_of(table: str) -> _Rule:
    return lambda operands: {"indices": operands.extent(table, 0)}


def _bag(operands: Operands) -> _Found:
    """Offsets begin at 0 and do not fall: zeros are the only ones that are sound without knowing more."""
    return {"indices": operands.extent("weight", 0), "offsets": 1}


def _number_of(argument: str, name: str) -> _Rule:
    return lambda operands: {
        name: operands.number(argument) if (operands.number(argument) or 0) > 0 else None
    }


def _advanced(operands: Operands) -> _Found:
    """``self[indices]``: one entry a dimension, a mask takes as many as it has."""
    found: _Found = {}
    dim, place = 0, 0
    last = max((_place(name) for name in operands.shapes), default=-1)
    while place <= last:
        name = f"indices.{place}"
        found[name] = operands.extent("self", dim)
        mask = operands.dtypes.get(name) in {"bool", "uint8"}
        dim += max(1, len(operands.shapes[name])) if mask else 1
        place += 1
    return found


def _place(name: str) -> int:
    base, _, place = name.rpartition(".")
    return number if base == "indices" and (number := read_whole(place)) is not None else -1


def _classes(operands: Operands) -> _Found:
    """Targets of a loss: the class is the second dimension, the only one of a single row."""
    shape = operands.shapes.get("self")
    return {"target": None if not shape else shape[min(1, len(shape) - 1)]}


def _labels(operands: Operands) -> _Found:
    """``ctc_loss``: time, batch, class."""
    return {"targets": operands.extent("log_probs", -1)}


def _unpooled(operands: Operands) -> _Found:
    sizes = [read_whole(one) for one in operands.texts.get("output_size", "").split(",")]
    known = [size for size in sizes if size is not None]
    return {"indices": prod(known) if len(known) == len(sizes) else None}


_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(
        ("index_select", "gather", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy",
         "index_fill", "index_reduce"),
        _along_dim,
    ),
    **dict.fromkeys(("take", "put"), _flat),
    **dict.fromkeys(("index", "index_put"), _advanced),
    **dict.fromkeys(("embedding_bag", "embedding_bag_forward_only"), _bag),
    **dict.fromkeys(
        ("nll_loss", "nll_loss_forward", "nll_loss_backward", "nll_loss2d", "nll_loss2d_forward",
         "nll_loss_nd", "cross_entropy_loss", "multi_margin_loss"),
        _classes,
    ),
    **dict.fromkeys(("max_unpool2d", "max_unpool3d"), _unpooled),
    "take_along_dim": _along_dim_or_flat,
    "embedding": _rows_of("weight"),
    "embedding_renorm": _rows_of("self"),
    "embedding_dense_backward": _number_of("num_weights", "indices"),
    "one_hot": _number_of("num_classes", "self"),
    "ctc_loss": _labels,
}  # fmt: skip

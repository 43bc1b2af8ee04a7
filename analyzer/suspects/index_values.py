"""Recorded values of an index against the extent of what it indexes: the decisive fact of a bad index."""

from __future__ import annotations

from math import prod

from analyzer.model import OpFacts
from analyzer.numbers import MAX_EXTENT, integer, natural
from analyzer.schema import Value
from analyzer.tables.indexing import BY_OP, IGNORED_INDEX, Indexing

_FRAMEWORK = "aten::"
_READ = ".min"  # stands where values were read


class BadIndex(Value):
    """A value that is outside. ``writer``: id of the op that wrote the index, null = not told."""

    value: int
    index: str
    extent: int
    low: int
    table: str
    writer: int | None

    @property
    def words(self) -> str:
        """``index 307 of `indices` is outside [0, 300) of `weight```."""
        return (
            f"index {self.value} of `{self.index}` is outside [{self.low}, {self.extent}) of `{self.table}`"
        )


def bad_index_of(op: OpFacts) -> BadIndex | None:
    """The first recorded index of an op that is out of range; null = none, or no values are known."""
    row = BY_OP.get(op.ref.name.removeprefix(_FRAMEWORK)) if op.ref.name.startswith(_FRAMEWORK) else None
    if row is None:
        return None
    told = dict(op.detail.attributes)
    shape = _shape(told.get(row.table, ""))
    for key in told:
        name = key.removesuffix(_READ)
        if name != key and (name == row.index or (row.dim == "place" and name.startswith(f"{row.index}."))):
            found = _outside(row, name, told, shape)
            if found is not None:
                return found
    return None


def _outside(row: Indexing, name: str, told: dict[str, str], shape: tuple[int, ...]) -> BadIndex | None:
    least, most = integer(told.get(f"{name}.min", "")), integer(told.get(f"{name}.max", ""))
    extent = _extent(row, name, told, shape)
    if least is None or most is None or extent is None:
        return None
    low = -extent if row.negative else 0
    ignored = integer(told.get(row.ignored, "")) if row.ignored else None
    ignored = IGNORED_INDEX if row.ignored and ignored is None else ignored
    wrong = most if most >= extent else least if least < low and least != ignored else None
    if wrong is None:
        return None
    writer = integer(told.get(f"{name}.from", ""))
    return BadIndex(value=wrong, index=name, extent=extent, low=low, table=row.table, writer=writer)


def _extent(row: Indexing, name: str, told: dict[str, str], shape: tuple[int, ...]) -> int | None:
    """How many places there are along the dimension; null = not told."""
    if not shape:
        return None
    if row.dim is None:
        return prod(shape)
    if row.dim == "place":
        at = natural(name.rpartition(".")[2], len(shape) - 1)
    elif isinstance(row.dim, str):
        at = integer(told.get(row.dim, ""))
    else:  # of a loss: classes stand second, or first where there is no batch
        at = row.dim if row.dim >= 0 else min(1, len(shape) - 1)
    return shape[at] if at is not None and -len(shape) <= at < len(shape) else None


def _shape(text: str) -> tuple[int, ...]:
    """``(300, 256)`` of ``300x256xfloat32``; empty = not told."""
    *dims, _dtype = text.split("x") if "x" in text else ("",)
    numbers = [natural(one, MAX_EXTENT) for one in dims]
    return tuple(one for one in numbers if one is not None) if None not in numbers else ()

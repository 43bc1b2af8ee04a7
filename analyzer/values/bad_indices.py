"""What printed integers prove: an index that leaves all it can index, and who wrote it (design.md rule 6).

A printed integer is not yet an index: a kernel can clamp it first, use it for a sine, or look it up in a
table that is not printed (constants of an AOTInductor package never are). So only two things count: a value
outside the extent that a failed check tells, and one that a kernel which does nothing but look up was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import polars as pl

from analyzer.model import KernelLaunch, PrintedTensor
from analyzer.parse.printed_tensor import is_integer
from analyzer.schema import Reason
from analyzer.values.flaws import Flaw, Origin, is_buffer
from analyzer.values.prints import Prints, Row

# Named after the aten ops in it, sorted (measured: PyTorch 2.13 writes views and slices too).
_GENERATED = re.compile(r"(?:triton_[a-z]+|cpp)_fused_(?P<ops>\w+?)(?:_[0-9]+)?")
_READS, _PUTS = "embedding|gather|index_select|index", "index_put|scatter_add|scatter"
_LOOKUP = re.compile(rf"_(?:{_READS}|{_PUTS}|take)(?=_)")
_PUT = re.compile(rf"_(?:{_PUTS})(?=_)")
_RESHAPED = re.compile(r"_(?:view|reshape|flatten|unflatten)(?=_)")
# They leave values as they are, and make no dimension larger (``expand`` would).
_MOVES = "_to_copy|alias|clone|detach|permute|select|slice|squeeze|t|transpose|unsqueeze|view|reshape|flatten"
# Longer names first and each to its end, so that a text is read in one way only.
_ONLY_LOOKUPS = re.compile(rf"(?:_(?:{_PUTS}|{_READS}|{_MOVES}|unflatten)(?=_|$))++")
# What is printed is not what they index with: ``ids.clamp(0, 999)``, ``ids % 1000``, ``where(...)``.
_CHANGES_INDEX = re.compile(
    r"_(?:abs|amax|amin|argmax|argmin|bitwise_\w+?|ceil|clamp|clamp_max|clamp_min|cumsum|div|floor|floor_divide"
    r"|fmod|full_like|logical_\w+?|masked_fill|maximum|minimum|mod|neg|relu|rem|remainder|rsub|sign|trunc|where"
    r"|zeros_like)(?=_)"
)
_INDEX_DTYPES = ("int64", "int32")  # PyTorch takes no others; int8 is a quantised table
_FLAGGED = 64  # launches of one kernel that are read again with their shapes
# Values are printed with six digits: above a million, off by one is not told.
_EXACT, _ROUNDING = 1_000_000, 1.00001


def find_bad_index(
    prints: Prints,
    read: Callable[[int], KernelLaunch],
    *,
    among: Sequence[int] | None = None,
    bound: int | None = None,
) -> Iterator[Flaw]:
    """Integer inputs that leave the extent of what they index.

    Args:
        prints: Of one process.
        read: Reads a launch with shapes and dtypes.
        among: Launches one of which failed; null = all, and nothing is known to have failed.
        bound: Extent that the failed check tells; null = only kernels that do nothing but look up are taken.

    Yields:
        At most one a kernel, the first launch of it.
    """
    rows = prints.before if among is None else prints.before.filter(pl.col("id").is_in(list(among)))
    for (kernel,), own in rows.group_by("kernel", maintain_order=True):
        name = str(kernel)
        if not (only_looks_up(name) or (bound is not None and indexes_with_inputs(name))):
            continue
        limit = bound or _least_extent(prints, read(own["id"][0]))
        if limit is None:
            continue
        for number in own.filter(_outside(limit))["id"].unique(maintain_order=True).head(_FLAGGED):
            if flaw := _bad_index(prints, read(number), bound):
                yield flaw
                break


def indexes_with_inputs(kernel: str) -> bool:
    """Whether a generated kernel looks something up, and no op in it makes another index of its input."""
    ops = _ops(kernel)
    return bool(_LOOKUP.search(ops)) and not _CHANGES_INDEX.search(ops)


def only_looks_up(kernel: str) -> bool:
    """Whether a generated kernel does nothing else: each integer that it is given is an index."""
    ops = _ops(kernel)
    return bool(_LOOKUP.search(ops)) and bool(_ONLY_LOOKUPS.fullmatch(ops.removesuffix("_")))


def _ops(kernel: str) -> str:
    """``_embedding_view_``; empty for a kernel that is not generated."""
    found = _GENERATED.fullmatch(kernel)
    return f"_{found['ops']}_" if found else ""


def outside(tensor: PrintedTensor, extent: int) -> float | None:
    """The value that leaves ``[-extent, extent)``, or null. Negative indices count from the end."""
    if not is_integer(tensor.dtype) or tensor.max is None or tensor.min is None:
        return None
    limit = float(extent) if extent < _EXACT else extent * _ROUNDING
    if tensor.max >= limit:
        return tensor.max
    return tensor.min if tensor.min < -limit else None


def outside_one(prints: Prints, launch: KernelLaunch, extent: int) -> PrintedTensor | None:
    """The one input of a launch that leaves an extent; null = none, or it cannot be told which was meant."""
    wrong = [one for one in _indices(prints, launch) if outside(one, extent) is not None]
    return wrong[0] if len({one.name for one in wrong}) == 1 else None


def _outside(extent: int) -> pl.Expr:
    return (pl.col("max") >= extent) | (pl.col("min") < -extent)


def _bad_index(prints: Prints, launch: KernelLaunch, bound: int | None) -> Flaw | None:
    table = _largest(prints, launch) if bound is None else _with_extent(prints, launch, bound)
    if table is None or (bound is None and len(_indices(prints, launch)) != 1):
        return None
    tensor = outside_one(prints, launch, table[1])
    if tensor is None:
        return None
    row = next((one for one in prints.given_to(launch.id) if one["line"] == tensor.line), None)
    value = outside(tensor, table[1])
    if row is None or value is None:
        return None
    return bad_index(prints, row, value, table[1], table[0])


def bad_index(prints: Prints, row: Row, value: float, extent: int, table: str | None = None) -> Flaw:
    """The flaw: a value that was printed before a launch, and that leaves an extent."""
    return Flaw(
        kind="index",
        launch=row["id"],
        arg=row["arg"],
        line=row["line"],
        value=value,
        origin=origin_of(prints, row),
        sure=True,
        table=table,
        extent=extent,
    )


def _indices(prints: Prints, launch: KernelLaunch) -> list[PrintedTensor]:
    """What can be an index: integers that the kernel was given."""
    return [
        one
        for place, one in enumerate(launch.before)
        if one.dtype in _INDEX_DTYPES and _is_given(prints, launch, place)
    ]


def _is_given(prints: Prints, launch: KernelLaunch, place: int) -> bool:
    """Whether an argument is an input. What stands in an output before the launch is garbage.

    Inductor passes outputs last, so that a buffer of which nothing else is known is one unless an input of
    the caller follows.
    """
    name = launch.before[place].name
    role = prints.role(launch.kernel, name) if is_buffer(name) else "read"
    if role is not None:
        return role == "read"
    return any(not is_buffer(one.name) for one in launch.before[place + 1 :])


def _tables(prints: Prints, launch: KernelLaunch) -> list[PrintedTensor]:
    """What can be indexed; a buffer that the kernel writes is a table only for one that puts values in."""
    puts = bool(_PUT.search(_ops(launch.kernel)))
    data = [one for one in launch.before if one.shape and one.dtype not in _INDEX_DTYPES]
    tables = [one for one in data if puts or prints.role(launch.kernel, one.name) != "written"]
    if any(not is_buffer(one.name) or prints.role(launch.kernel, one.name) is not None for one in tables):
        return tables
    return []  # outputs that are not known as such: the table itself is not printed


def _extents(kernel: str, tensor: PrintedTensor) -> tuple[int, ...]:
    """Dimensions that an index can have: an embedding reads rows; which axis others index is not printed."""
    shape = tensor.shape or ()
    if _RESHAPED.search(_ops(kernel)):
        return (tensor.elements or max(shape, default=0),)
    if "_embedding_" in _ops(kernel):
        return shape[:1] if len(shape) == 2 else ()
    return shape


def _largest(prints: Prints, launch: KernelLaunch) -> tuple[str, int] | None:
    """The largest extent and the tensor that has it: what leaves it leaves all of them."""
    known = [(extent, one.name) for one in _tables(prints, launch) for extent in _extents(launch.kernel, one)]
    return max(known)[::-1] if known else None


def _least_extent(prints: Prints, launch: KernelLaunch) -> int | None:
    table = _largest(prints, launch)
    return table[1] if table else None


def _with_extent(prints: Prints, launch: KernelLaunch, bound: int) -> tuple[str, int] | None:
    """The tensor that has the extent of the failed check."""
    names = [one.name for one in _tables(prints, launch) if bound in (one.shape or ())]
    return (names[0], bound) if names else None


def origin_of(prints: Prints, given: Row) -> Origin:
    """Who wrote an argument before a launch: the last kernel of this execution that did, or the caller."""
    arg = given["arg"]
    changed = (pl.col("min") != pl.col("was_min")) | (pl.col("max") != pl.col("was_max"))
    writers = [kernel for (kernel, name), role in prints.roles.items() if name == arg and role == "written"]
    written = changed.fill_null(value=False) | pl.col("kernel").is_in(writers)
    rows = prints.same_run(prints.pairs, given).filter((pl.col("arg") == arg) & written)
    writer = rows.tail(1).to_dicts()
    if writer:
        return Origin(who="kernel", arg=arg, line=writer[0]["line"], launch=writer[0]["id"])
    return Origin(who="not_shown" if is_buffer(arg) else "caller", arg=arg, line=given["line"])


def large_integers(launch: KernelLaunch) -> list[Reason]:
    """Integer inputs beyond the element count of every operand: whatever they index, it is not there."""
    size = max((one.elements or 0 for one in launch.before), default=0)
    return [
        Reason(
            evidence="index_value",
            text=f"{one.name} holds {one.max:.15g}, and no operand has more than {size} elements",
            weight=1.5,
            lines=[one.line],
        )
        for one in launch.before
        if is_integer(one.dtype) and one.max is not None and one.max >= size > 0
    ]

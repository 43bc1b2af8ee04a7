"""What printed integers prove: an index that leaves all it can index, and who wrote it (design.md rule 6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import isfinite

import polars as pl

from analyzer.model import KernelLaunch, PrintedTensor
from analyzer.parse.printed_tensor import is_floating, is_integer
from analyzer.schema import Reason
from analyzer.suspects.tensor_evidence import Flaw, Origin, Prints, Row, is_buffer

_GENERATED = re.compile(r"(?:triton_[a-z]+|cpp)_fused_")  # named after the aten ops in it
_INDEX_WORDS = re.compile(r"_(?:embedding|gather|index|index_select|index_put|take|scatter|scatter_add)(?=_)")
_FLAGGED = 64  # launches of one kernel that are read again with their shapes
# Values are printed with six digits: above a million, off by one is not told.
_EXACT, _ROUNDING = 1_000_000, 1.00001


def find_bad_index(prints: Prints, read: Callable[[int], KernelLaunch]) -> Iterator[Flaw]:
    """Integer inputs that leave the extent of all that they can index, for kernels named after indexing ops.

    Args:
        prints: Of one process.
        read: Reads a launch with shapes and dtypes.

    Yields:
        At most one a kernel, the first launch of it.
    """
    for (kernel,), rows in prints.before.group_by("kernel", maintain_order=True):
        name = str(kernel)
        if not (_GENERATED.match(name) and _INDEX_WORDS.search(f"{name}_")):
            continue
        table = _table(name, read(rows["id"][0]))
        if table is None:
            continue
        for row in rows.filter(_outside(table[1])).head(_FLAGGED).to_dicts():
            if flaw := _bad_index(prints, row, read(row["id"])):
                yield flaw
                break


def outside(tensor: PrintedTensor, extent: int) -> float | None:
    """The value that leaves ``[-extent, extent)``, or null. Negative indices count from the end."""
    if not is_integer(tensor.dtype) or tensor.max is None or tensor.min is None:
        return None
    limit = float(extent) if extent < _EXACT else extent * _ROUNDING
    if tensor.max >= limit:
        return tensor.max
    return tensor.min if tensor.min < -limit else None


def _outside(extent: int) -> pl.Expr:
    return (pl.col("max") >= extent) | (pl.col("min") < -extent)


def _bad_index(prints: Prints, row: Row, launch: KernelLaunch) -> Flaw | None:
    table = _table(launch.kernel, launch)
    tensor = next((one for one in launch.before if one.name == row["arg"] and one.line == row["line"]), None)
    if table is None or tensor is None or (value := outside(tensor, table[1])) is None:
        return None
    origin = origin_of(prints, row)
    return Flaw(
        kind="index",
        launch=row["id"],
        arg=row["arg"],
        line=row["line"],
        value=value,
        origin=origin,
        sure=True,
        table=table[0],
        extent=table[1],
    )


def _table(kernel: str, launch: KernelLaunch) -> tuple[str, int] | None:
    """The largest extent that an integer input can index, and the tensor that has it.

    An embedding reads rows of a matrix; which axis another op indexes is not printed, so that its largest one
    counts. With several candidates the largest counts too: what leaves it leaves all of them.
    """
    data = [one for one in launch.before if _is_data(one) and one.shape]
    if "_embedding" in kernel:
        rows = [(one.shape[0], one.name) for one in data if one.shape and len(one.shape) == 2]
    else:
        rows = [(max(one.shape), one.name) for one in data if one.shape]
    if not rows:
        return None
    extent, name = max(rows)
    return name, extent


def _is_data(tensor: PrintedTensor) -> bool:
    """Floating point; where no dtype is printed, values with a fraction show it (observed.md 34)."""
    if tensor.dtype is not None:
        return is_floating(tensor.dtype)
    told = [value for value in (tensor.min, tensor.max) if value is not None and isfinite(value)]
    return any(value != round(value) for value in told)


def origin_of(prints: Prints, given: Row) -> Origin:
    """Who wrote an argument before a launch: the last kernel of this execution that did, or the caller."""
    arg = given["arg"]
    changed = (pl.col("min") != pl.col("was_min")) | (pl.col("max") != pl.col("was_max"))
    writers = [kernel for (kernel, name), role in prints.roles.items() if name == arg and role == "written"]
    written = changed.fill_null(value=True) | pl.col("kernel").is_in(writers)
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

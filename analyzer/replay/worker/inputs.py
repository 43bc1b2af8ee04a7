"""Values of the inputs, by the fidelity ladder: recorded, by recorded statistics, valid by construction.

Integers are never random: an index that the log does not show to be bad must not go out of range here.
"""

from __future__ import annotations

import math
import os
import random
from pathlib import Path
from typing import Any

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.worker.dtypes import (
    INTEGERS,
    decode_integers,
    encode,
    size_bytes,
    without_special_values,
)
from analyzer.replay.worker.plan_file import Tensor
from analyzer.replay.worker.stored import read_stored

_PERIOD = 4099  # distinct elements of made values, then repeated: prime, so that no row equals the next
_SPREAD = 0.5  # of made floats around zero: sums over thousands stay finite in float16


def build_values(tensor: Tensor, *, valid: bool, salt: str, folder: Path) -> bytes:
    """The elements of one input, row by row.

    Args:
        tensor: What the plan says of it.
        valid: For the control: indices within the extent, zero where it is not known; floats finite.
        salt: Makes the made floats of different inputs different.
        folder: Of the plan; files are relative to it.

    Raises:
        CannotRunError: Not a type that is made here.
        OSError: Recorded values cannot be read.
        ValueError: They do not fit what the plan says.
    """
    count = math.prod(tensor.shape)
    size = size_bytes(tensor.dtype) * count
    check_size(tensor, size)
    data = _by_ladder(tensor, count, salt, folder)
    if len(data) != size:
        raise ValueError(f"recorded values have {len(data)} bytes, the shape {tensor.shape} needs {size}")
    return _made_valid(tensor, data) if valid else data


def check_size(tensor: Tensor, size: int) -> None:
    """Refuse a tensor that this machine cannot hold: its shape may be anything.

    Raises:
        CannotRunError: It takes more than half of the memory, as it is or as its strides lay it out.
    """
    steps = zip(tensor.shape, tensor.stride or ())  # noqa: B905  (Python 3.9)
    laid_out = size_bytes(tensor.dtype) * (1 + sum((length - 1) * step for length, step in steps))
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if min((*tensor.shape, 0)) < 0 or max(size, laid_out) > machine // 2:
        raise CannotRunError(f"a tensor of shape {tensor.shape} does not fit into the memory of this machine")


def _by_ladder(tensor: Tensor, count: int, salt: str, folder: Path) -> bytes:
    if tensor.fidelity == "recorded" and tensor.file is not None:
        return read_stored(folder / tensor.file, tensor.key, tensor.dtype)
    if tensor.fidelity == "recorded" and tensor.values is not None:
        return encode(tensor.dtype, tensor.values)
    if tensor.fidelity == "recorded":
        raise ValueError("the plan says recorded, but names neither a file nor values")
    if tensor.fidelity == "statistics" and (tensor.low, tensor.high, tensor.mean) != (None, None, None):
        return _repeated(tensor.dtype, _by_statistics(tensor, min(count, _PERIOD)), count)
    return _repeated(tensor.dtype, _made(tensor, min(count, _PERIOD), salt), count)


def _repeated(dtype: str, values: list[Any], count: int) -> bytes:
    size = size_bytes(dtype) * count
    unit = encode(dtype, values)
    return unit if len(unit) == size else (unit * (size // len(unit) + 1))[:size]


def _made(tensor: Tensor, count: int, salt: str) -> list[Any]:
    if tensor.dtype == "bool":
        return [place % 2 for place in range(count)]
    if tensor.dtype in INTEGERS:
        return spread(0, max((tensor.extent or 1) - 1, 0), count)
    made = random.Random(salt)  # noqa: S311  (values, no secret)
    return [_SPREAD * made.uniform(-1, 1) for _ in range(count)]


def _by_statistics(tensor: Tensor, count: int) -> list[Any]:
    """Both ends occurred, so both are there; between them integers stay within the extent."""
    known = [one for one in (tensor.low, tensor.high, tensor.mean) if one is not None]
    low = tensor.low if tensor.low is not None else min(known)
    high = tensor.high if tensor.high is not None else max(known)
    if tensor.dtype not in INTEGERS:
        step = (float(high) - float(low)) / max(count - 1, 1)
        return [float(low) + step * place for place in range(count)]
    first, last = int(low), int(high)
    if tensor.extent is None:
        return spread(first, last, count)
    end = max(tensor.extent - 1, 0)
    inside = spread(min(max(first, 0), end), min(max(last, 0), end), count)
    if count == 1:  # one element cannot be both: the end that is out of range, if one is
        return [first if first < 0 else last]
    return [first, *inside[1:-1], last] if count else []


def spread(first: int, last: int, count: int) -> list[int]:
    """Integers from ``first`` to ``last`` in even steps, both ends included; one element is the last."""
    if count == 1:
        return [last]
    return [first + (last - first) * place // (count - 1) for place in range(count)]


def _made_valid(tensor: Tensor, data: bytes) -> bytes:
    if tensor.dtype == "bool":
        return data
    if tensor.dtype not in INTEGERS:
        return without_special_values(tensor.dtype, data)
    if not tensor.extent:
        return bytes(len(data))
    last = tensor.extent - 1
    return encode(tensor.dtype, [min(max(one, 0), last) for one in decode_integers(tensor.dtype, data)])

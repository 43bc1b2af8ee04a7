"""Families that move data as it is (cast, copy, reshape, transpose, slice, concatenate) or fill it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.executors.family_parts import Call, Operand, Part, product
from analyzer.replay.executors.operands import integers, scalar

_MOST_DIMENSIONS = 6  # whose orders are tried: 720


def _cast(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """To the type and device of the result; a copy in any case."""
    value = _first(part, operands)
    device = part.device(part.outputs[0].device) if part.outputs else value.device
    return value.to(device=device, dtype=part.dtype() or value.dtype, copy=True), 1


def _first(part: Part, operands: list[Operand]) -> Any:
    if not operands:
        raise CannotRunError(f"{part.word} needs an operand, the plan has none")
    return operands[0].value


def _reshape(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """To the shape of the result; inside of a fused op, where it is not known, nothing."""
    value, shape = _first(part, operands), part.shape()
    return (value.clone() if shape is None else value.reshape(shape).clone()), 1


def _transpose(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """By the order that is said, else by one that gives the shape of the result, else the last two."""
    value, shape = _first(part, operands), part.shape()
    order = integers(part.scalars, "perm", "dims", "permutation")
    if order is None:
        fitting = _order(value.shape, shape)
        order = list(fitting) if fitting else _swapped(part, value.dim())
    return value.permute(order).contiguous(), 1


def _order(before: Any, after: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """An order of dimensions that turns one shape into the other and is not the same; null = none."""
    if after is None or len(before) != len(after) or len(before) > _MOST_DIMENSIONS:
        return None
    orders = permutations(range(len(before)))
    same = tuple(range(len(before)))
    fitting = (one for one in orders if one != same and tuple(before[place] for place in one) == after)
    return next(fitting, None)


def _swapped(part: Part, rank: int) -> list[int]:
    order = list(range(rank))
    if rank < 2:
        return order
    first = int(part.number("axis_1", "dim0", default=-2))
    second = int(part.number("axis_2", "dim1", default=-1))
    order[first], order[second] = order[second], order[first]
    return order


def _broadcast(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    value, shape = _first(part, operands), part.shape()
    return (value if shape is None else value.expand(shape).contiguous()), 1


def _slice(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """The first elements of each dimension, as many as the result has: which ones decides nothing."""
    value, shape = _first(part, operands), part.shape()
    if shape is None:
        return value.clone(), 1
    if len(shape) != value.dim() or any(new > old for new, old in zip(shape, value.shape)):  # noqa: B905  (Python 3.9)
        raise CannotRunError(f"{part.word} of {tuple(value.shape)} does not give {shape}")
    return value[tuple(slice(0, size) for size in shape)].contiguous(), 1


def _concat(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """All operands, along the dimension that is said, else the one that grows."""
    values = [one.value for one in operands]
    _first(part, operands)
    return part.torch.cat(values, _grown(part, values[0].shape)), len(values)


def _grown(part: Part, before: Any) -> int:
    shape = part.shape() or before
    changed = zip(shape, before)  # noqa: B905
    grown = [place for place, (new, old) in enumerate(changed) if new != old]
    return int(part.axis(grown[0] if grown else 0))


def _stack(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    _first(part, operands)
    return part.torch.stack([one.value for one in operands], part.axis(0)), len(operands)


def _split(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    value = _first(part, operands)
    if not part.outputs:
        return value.clone(), 1
    axis = _grown(part, value.shape)
    return [
        one.clone() for one in part.torch.split(value, [each.shape[axis] for each in part.outputs], axis)
    ], 1


def _tile(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    value, shape = _first(part, operands), part.shape()
    if shape is None:
        return value.clone(), 1
    before = (1,) * (len(shape) - value.dim()) + tuple(value.shape)
    repeats = [new // max(old, 1) for new, old in zip(shape, before)]  # noqa: B905
    return part.torch.tile(value, repeats), 1


def _pad(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    value, shape = _first(part, operands), part.shape()
    if shape is None:
        return value.clone(), 1
    changed = zip(reversed(shape), reversed(value.shape))  # noqa: B905
    sizes = [size for new, old in changed for size in (0, new - old)]
    return part.torch.nn.functional.pad(value, sizes), 1


def _fill(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """A tensor of one value, of the type of the result."""
    if not part.outputs:
        raise CannotRunError(f"the type of the result of {part.word} is not known")
    plan = part.outputs[0]
    value = scalar(part.scalars, "value", "fill_value") or 0
    made = part.torch.full(plan.shape, value, dtype=part.dtype(), device=part.device(plan.device))
    return made, len(operands)


def _range(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    if not part.outputs:
        raise CannotRunError(f"the type of the result of {part.word} is not known")
    plan = part.outputs[0]
    made = part.torch.arange(product(plan.shape), dtype=part.dtype(), device=part.device(plan.device))
    return made.reshape(plan.shape), len(operands)


def _nonzero(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    return part.torch.nonzero(_first(part, operands)), 1


_NAMES: Mapping[Call, tuple[str, ...]] = {
    _cast: (
        *(
            "cast",
            "copy",
            "copy_",
            "to",
            "to_copy",
            "clone",
            "transfer",
            "convert_element_type",
            "contiguous",
        ),
        *("transfer_to", "device_put", "lift_fresh_copy"),
    ),
    _reshape: (
        *("reshape", "view", "flatten", "squeeze", "unsqueeze", "expand_dims", "squeeze_shape", "rebind"),
        *("unsqueeze_shape", "unsafe_view", "rebind_tensor_shape"),
    ),
    _transpose: ("transpose", "permute", "t"),
    _broadcast: ("broadcast_to", "expand", "broadcast"),
    _slice: ("slice", "narrow", "slice_tensor"),
    _concat: ("concat", "cat"),
    _stack: ("stack",),
    _split: ("split", "chunk", "split_with_sizes"),
    _tile: ("tile", "repeat"),
    _pad: ("pad", "constant_pad_nd", "pad.constant"),
    _fill: ("fill", "full", "zeros", "ones", "empty", "constant", "zeros_like", "full_like"),
    _range: ("range", "arange", "iota"),
    _nonzero: ("nonzero", "arg_nonzero"),
}
LAYOUT: Mapping[str, Call] = {word: call for call, words in _NAMES.items() for word in words}

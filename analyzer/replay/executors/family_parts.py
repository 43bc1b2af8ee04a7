"""Operands and results of one op of a family, for the tables of ``families``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.executors.operands import scalar
from analyzer.replay.worker.plan_file import Tensor


class Operand(NamedTuple):
    """A tensor, and what the plan says of it (null = a result inside of a fused op)."""

    value: Any
    plan: Tensor | None = None

    @property
    def extent(self) -> int | None:
        """Size of the dimension that it indexes; null = not known, or it holds no indices."""
        return self.plan.extent if self.plan else None


class Part(NamedTuple):
    """One op, alone or of a fused one.

    ``word``: see ``word_of``. ``of_max``: it has MAX's semantics (an index may count from the end).
    ``scalars``: arguments that are no tensors. ``outputs``: types of the results, known of the last part
    alone. ``device`` turns a recorded device into the one to use.
    """

    torch: Any
    word: str
    of_max: bool
    scalars: Mapping[str, Any]
    outputs: Sequence[Tensor]
    device: Callable[[str | None], Any]

    def axis(self, default: int = -1) -> int:
        """The dimension that it works along."""
        found = scalar(self.scalars, "axis", "dim")
        return found if isinstance(found, int) else default

    def shape(self) -> tuple[int, ...] | None:
        """Of the result; null = not known."""
        return self.outputs[0].shape if self.outputs else None

    def dtype(self) -> Any:
        """Of the result; null = not known."""
        word = self.outputs[0].dtype if self.outputs else scalar(self.scalars, "dtype")
        found = getattr(self.torch, str(word).replace("torch.", ""), None)
        return found if isinstance(found, self.torch.dtype) else None

    def number(self, *names: str, default: float) -> Any:
        """A scalar argument."""
        found = scalar(self.scalars, *names)
        return default if found is None else found


Call = Callable[[Part, list[Operand]], tuple[Any, int]]  # result, and how many operands it took


def is_index(operand: Operand) -> bool:
    """Whether it can hold indices."""
    value = operand.value
    return not (value.is_floating_point() or value.is_complex() or str(value.dtype) == "torch.bool")


def split_index(part: Part, operands: list[Operand]) -> tuple[Any, Operand, list[Any]]:
    """Data, index, and the rest in order: by kind, as logs do not agree on the order.

    An index is the first integer tensor that has an extent, else the first one behind the data. Of integers
    alone the first is the data, as every op here takes it first.

    Raises:
        CannotRunError: One of the two is missing.
    """
    marked = [one for one in operands if is_index(one) and one.extent is not None]
    whole = [one for one in operands if is_index(one)]
    index = marked[0] if marked else whole[0] if len(whole) < len(operands) and whole else None
    if index is None and len(whole) > 1:
        index = whole[1]
    rest = [one.value for one in operands if one is not index]
    if index is None or not rest:
        raise CannotRunError(f"{part.word} needs data and an index, the plan has {len(operands)} operands")
    return rest[0], index, rest[1:]


def data_and_index_first(operands: list[Operand]) -> list[Operand]:
    """The same, the tensor that is indexed and its index in front, where an extent tells which they are."""
    index = next((one for one in operands if is_index(one) and one.extent is not None), None)
    if index is None:
        return operands
    others = [one for one in operands if one is not index]
    fitting = [one for one in others if index.extent in one.value.shape]
    front = [*(fitting or others)[:1], index]
    return [*front, *(one for one in operands if all(one is not each for each in front))]


def indexed_axis(part: Part, data: Any, index: Operand) -> int:
    """Said by the op, else the only dimension of the index's extent, else the first."""
    fitting = [place for place, size in enumerate(data.shape) if size == index.extent]
    return int(part.axis(fitting[0] if len(fitting) == 1 else 0))


def product(shape: Sequence[int]) -> int:
    """Number of elements."""
    return math.prod(shape)

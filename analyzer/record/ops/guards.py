"""Recognises the operands of an op that was seen before, without reading one attribute in Python.

Dynamo's ``TensorGuards`` compare dtype, device, sizes and strides of all tensors of a call in one call of
C++; a key made in Python costs several times as much. They are private to torch: where they are not as we
know them, ``describe.py`` does without. Runs in the recorded program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

MOST = 8  # kinds of operands of one op that are looked through; with more a key is quicker


class Known:
    """What is known of a call: its text, whether it takes integers, and gives some (null = not known yet)."""

    __slots__ = ("device", "gives", "takes", "text")

    def __init__(self, text: bytes, *, takes: bool) -> None:
        self.text = text
        self.takes = takes
        self.gives: bool | None = None
        self.device = cuda_device(text)


def cuda_device(text: bytes) -> int:
    """The number in ``;target=cuda:0`` of an op's text; -1 = it runs on no CUDA device."""
    number = text.partition(b";target=cuda:")[2].partition(b";")[0]
    return int(number) if number.isdigit() else -1


Getter = Callable[[Any], tuple[Any, ...]]
# Check of the tensors, where they are, where the others are (null = there are none), their values and types
# (null = no numbers among them), what is known.
_Seen = tuple[Callable[..., bool], Getter, Getter | None, tuple[Any, ...], tuple[type, ...] | None, Known]


class Guards:
    """What is known of the calls of one op, by the number of positional arguments."""

    __slots__ = ("_seen", "_strided", "_tensor")

    def __init__(self, tensor: type, strided: object) -> None:
        self._tensor = tensor
        self._strided = strided
        self._seen: dict[int, list[_Seen] | None] = {}  # null = too many kinds

    def find(self, args: Sequence[Any]) -> Known | None:
        """What ``learn`` was told for such operands; null = nothing."""
        for check, tensors, others, values, types, known in self._seen.get(len(args)) or ():
            if others is not None:
                rest = others(args)
                if rest != values or (types is not None and tuple(map(type, rest)) != types):
                    continue
            if check(*tensors(args)):
                return known
        return None

    def learn(self, args: Sequence[Any], known: Known) -> None:
        """Remember a call without keyword arguments.

        One with tensors in a list, or with sparse or nested ones, is left to the key.
        """
        seen = self._seen.setdefault(len(args), [])
        if seen is None:
            return
        if len(seen) == MOST:  # a growing KV cache has new shapes at every step
            self._seen[len(args)] = None
            return
        tensors = [at for at, arg in enumerate(args) if isinstance(arg, self._tensor)]
        others = [at for at, arg in enumerate(args) if not isinstance(arg, self._tensor)]
        if any(self._holds_tensors(args[at]) for at in others):
            return
        if any(args[at].is_nested or args[at].layout is not self._strided for at in tensors):
            return
        check = tensor_check([args[at] for at in tensors]) if tensors else None
        if check is not None:
            rest = tuple(args[at] for at in others)
            numbers = any(isinstance(one, (int, float)) for one in rest)  # 1, 1.0 and True read differently
            types = tuple(map(type, rest)) if numbers else None
            seen.append((check, _getter(tensors), _getter(others) if others else None, rest, types, known))

    def _holds_tensors(self, arg: Any) -> bool:
        return isinstance(arg, (list, tuple)) and any(isinstance(one, self._tensor) for one in arg)


def tensor_check(tensors: Sequence[Any]) -> Callable[..., bool] | None:
    """A function that says whether other tensors are of the same kind and form; null = torch has none."""
    import torch

    try:
        guards = torch._C._dynamo.guards  # type: ignore[attr-defined, unused-ignore]  # noqa: SLF001 - no public way
        made = guards.TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None)
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None
    check: Callable[..., bool] = made.check
    return check


def _getter(places: Sequence[int]) -> Getter:
    """Arguments at these places, always as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    (only,) = places
    return lambda args: (args[only],)

"""What is noted of an op before its launch: its operands as text, and its integer inputs.

Runs in the recorded program, at every op. Nothing here may break it: what a tensor refuses to say is left
out.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Literal

from analyzer.record.ops.inputs import CODES, SavedInput, pack_inputs
from analyzer.record.ops.recorder import Recorder
from analyzer.record.ops.settings import INPUT_LIMIT
from analyzer.record.ops.signature import Operands, OpInfo, by_name

Inputs = Literal["none", "cpu", "sync"]
# A tensor subclass may refuse any question, and reading a value meets the fault of an earlier op. The program
# must run as without us: the op's own call is where it fails.
_REFUSALS = (RuntimeError, TypeError, ValueError, AttributeError)


class Describer:
    """Describes ops for one recorder."""

    def __init__(self, recorder: Recorder, inputs: Inputs) -> None:
        import torch

        self._recorder = recorder
        self._inputs = inputs
        self._operands = Operands(torch.Tensor, torch.strided)
        self._infos: dict[Any, OpInfo] = {}

    def info(self, func: Any) -> OpInfo:
        """What is fixed about an overload."""
        info = self._infos.get(func)
        if info is None:
            info = self._infos[func] = OpInfo(func)
        return info

    def describe(self, func: Any, info: OpInfo, args: Any, kwargs: Any) -> tuple[bytes, bytes | None]:
        """The op's text, and its saved inputs; null = none, or none that may be read."""
        ints: list[Any] = []
        try:
            key = (func, *self._operands.key(args, kwargs, ints))
            known = self._recorder.texts
            text = known.get(key)
            if text is None:
                text = known[key] = self._operands.text(info, args, kwargs)
        except _REFUSALS:
            return f"{info.name}\n;target=unknown".encode(), None
        if not ints or self._inputs == "none":
            return text, None
        try:
            return text, self._saved(info, args, kwargs)
        except _REFUSALS:
            return text, None

    def _saved(self, info: OpInfo, args: Any, kwargs: Any) -> bytes | None:
        named = by_name(self._operands, info, args, kwargs, self._is_readable)
        # What the op writes holds garbage before it (observed.md 29).
        found = [read_values(name, one) for name, one in named if name.partition(".")[0] not in info.written]
        return pack_inputs(info.name, found) if found else None

    def _is_readable(self, tensor: Any) -> bool:
        """While a CUDA graph is captured nothing may be read: a copy to the host would end the capture."""
        if not self._operands.integers.get(tensor.dtype, False):
            return False
        kind = tensor.device.type
        return kind == "cpu" or (kind != "meta" and self._inputs == "sync" and self._recorder.capture is None)


def read_values(name: str, tensor: Any) -> SavedInput:
    """Range of a tensor, and its values up to the limit. One that is not plain gives what it can."""
    import torch

    low = high = None
    data = b""
    own_dispatch = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    ragged = tensor.is_nested
    if not ragged and tensor.layout is torch.strided and not own_dispatch and tensor.numel():
        values = tensor.detach()
        if values.dtype not in _unordered():
            low, high = (int(one) for one in torch.aminmax(values))
        size = values.numel() * values.element_size()
        if size <= INPUT_LIMIT and _word(values.dtype) in CODES:
            values = values.cpu().contiguous()
            data = ctypes.string_at(values.data_ptr(), size)  # numpy need not be there
    return SavedInput(
        name=name,
        shape=() if ragged else tuple(tensor.shape),
        dtype=_word(tensor.dtype),
        device=str(tensor.device),
        low=low,
        high=high,
        data=data,
    )


def _word(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


@cache
def _unordered() -> frozenset[Any]:
    """Dtypes that ``aminmax`` does not take."""
    import torch

    names = ("uint16", "uint32", "uint64")
    return frozenset(getattr(torch, name) for name in names if hasattr(torch, name))

"""What is noted of an op before its launch: its operands as text, and its integer inputs.

Runs in the recorded program, at every op. Nothing here may break it: what a tensor refuses to say is left
out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from functools import cache
from typing import Any, Literal

from analyzer.record.ops.guards import Guards, Known
from analyzer.record.ops.inputs import CODES, SavedInput, pack_inputs
from analyzer.record.ops.recorder import Recorder
from analyzer.record.ops.settings import INPUT_LIMIT
from analyzer.record.ops.signature import Operands, OpInfo, by_name
from analyzer.record.ops.values import is_indexing

EMPTY = b"empty"  # new memory without values: aten::empty, aten::new_empty_strided ...
KNOWN_OPS = 1 << 15  # distinct operand lists; a growing KV cache makes new ones at every step
Inputs = Literal["none", "cpu", "sync"]
# A tensor subclass may refuse any question, and reading a value meets the fault of an earlier op. The program
# must run as without us: the op's own call is where it fails.
_REFUSALS = (RuntimeError, TypeError, ValueError, AttributeError)


class Describer:
    """Describes ops for one recorder. One that was seen before with such operands costs one look-up."""

    def __init__(self, recorder: Recorder, inputs: Inputs) -> None:
        import torch

        self._recorder = recorder
        self._inputs = inputs
        self._torch = (torch.Tensor, torch.strided)
        self._operands = Operands(*self._torch)
        self._key = self._operands.key
        self._infos: dict[Any, OpInfo] = {}
        self._known: dict[Hashable, Known] = {}

    def info(self, func: Any) -> OpInfo:
        """What is fixed about an overload."""
        info = self._infos.get(func)
        if info is None:
            info = self._infos[func] = OpInfo(func, Guards(*self._torch))
        return info

    def describe(self, info: OpInfo, args: Any, kwargs: Any) -> tuple[Known, bytes | None]:
        """The op's text, and its saved inputs; null = none, or none that may be read."""
        try:
            known = None if kwargs else info.guards.find(args)
            if known is None:
                key = (info, *self._key(args, kwargs))
                known = self._known.get(key) or self._learn(key, info, args, kwargs or {})
                if not kwargs:
                    info.guards.learn(args, known)
        except _REFUSALS:
            return Known(f"{info.name}\n;target=unknown".encode(), takes=False), None
        if not known.takes:
            return known, None
        try:
            return known, self._saved(info, args, kwargs or {})
        except _REFUSALS:
            return known, None

    def gave(self, known: Known, ident: int, result: Any) -> None:
        """Remember who made the integers of a result."""
        try:
            tensors = [
                one for one in self._operands.all_tensors([result], {}) if self._operands.is_integer(one)
            ]
        except _REFUSALS:
            tensors = []
        if EMPTY in known.text.partition(b"\n")[0]:
            tensors = []  # nobody wrote what is in it
        known.gives = bool(tensors)
        self._recorder.writers.wrote(ident, tensors)

    def _learn(self, key: Hashable, info: OpInfo, args: Any, kwargs: Any) -> Known:
        if len(self._known) >= KNOWN_OPS:
            self._known.clear()
        integers = any(self._operands.is_integer(one) for one in self._operands.all_tensors(args, kwargs))
        text = self._operands.text(info, args, kwargs)
        self._known[key] = found = Known(text, takes=integers and self._inputs != "none")
        return found

    def _saved(self, info: OpInfo, args: Any, kwargs: Any) -> bytes | None:
        named = by_name(self._operands, info, args, kwargs, self._operands.is_integer)
        # What the op writes holds garbage before it (observed.md 29).
        indexing = is_indexing(info.name)
        found = [
            one
            for name, tensor in named
            if name.partition(".")[0] not in info.written
            and (one := self._save(name, tensor, indexing=indexing)) is not None
        ]
        return pack_inputs(info.name, found) if found else None

    def _save(self, name: str, tensor: Any, *, indexing: bool) -> SavedInput | None:
        """Values where they may be read, and who wrote them; null = neither is known."""
        writer = self._recorder.writers.of(tensor)
        if self._is_readable(tensor):
            return read_values(name, tensor)._replace(writer=writer)
        copied = self._recorder.copy(tensor) if indexing and tensor.is_cuda else None
        if writer is None and copied is None:
            return None
        shape, dtype = tuple(tensor.shape), _word(tensor.dtype)
        return SavedInput(name, shape, dtype, str(tensor.device), None, None, b"", writer, copied)

    def _is_readable(self, tensor: Any) -> bool:
        """While a CUDA graph is captured nothing may be read: a copy to the host would end the capture."""
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

"""Tensors, devices and the clock of torch."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.hooks.tensors import sizes_of
from analyzer.replay.hooks.torch_ops import synchronize
from analyzer.replay.worker.dtypes import INTEGERS
from analyzer.replay.worker.plan_file import Tensor


class TorchSide:
    """torch as the worker uses it.

    Args:
        device: Where all of it goes (null = as recorded).
        seed: Of what ops draw by chance.
        note: Told once what was executed elsewhere than recorded.
    """

    def __init__(self, device: str | None, seed: int, note: Callable[[str], None]) -> None:
        import torch

        torch.manual_seed(seed)  # initialises no device
        self._torch = torch
        self._device = device
        self._note = note

    def device(self, word: str | None) -> Any:
        """The device to use for a recorded one; MAX says ``gpu:0`` for torch's ``cuda:0``."""
        wanted = (self._device or word or "cpu").replace("gpu", "cuda")
        torch = self._torch
        try:
            device = torch.device(wanted)
        except RuntimeError as error:
            raise CannotRunError(f"torch knows no device {wanted}") from error
        if device.type in {"cpu", "meta"}:
            return device
        if device.type == "cuda" and torch.cuda.is_available():
            index = device.index or 0
            if index < torch.cuda.device_count():
                return torch.device("cuda", index)
        self._note(f"torch has no {wanted} here: executed on the cpu")
        return torch.device("cpu")

    def make(self, tensor: Tensor, data: bytes) -> Any:
        """A tensor with these elements, laid out as recorded."""
        torch = self._torch
        dtype = getattr(torch, tensor.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise CannotRunError(f"this torch has no type {tensor.dtype}")
        device = self.device(tensor.device)
        flat = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
        if tensor.stride is None or not data:
            return flat.reshape(tensor.shape).to(device)
        return self._strided(flat, tensor.shape, tensor.stride, device)

    def _strided(self, flat: Any, shape: Sequence[int], stride: Sequence[int], device: Any) -> Any:
        """Elements where the strides put them; those that share a place have the last one's value."""
        torch = self._torch
        length = 1 + sum((size - 1) * step for size, step in zip(shape, stride))  # noqa: B905  (Python 3.9)
        if length == math.prod(shape) and _is_row_major(shape, stride):
            return flat.to(device).as_strided(shape, stride)
        width = flat.element_size()
        buffer = torch.zeros(length * width, dtype=torch.uint8).view(flat.dtype)
        if _shares_places(shape, stride):
            places = torch.zeros((), dtype=torch.int64)
            for size, step in zip(shape, stride):  # noqa: B905
                places = places.unsqueeze(-1) + torch.arange(size) * step
            buffer.view(torch.uint8).view(-1, width)[places.flatten()] = flat.view(torch.uint8).view(
                -1, width
            )
        else:
            buffer.as_strided(shape, stride).copy_(flat.reshape(shape))
        return buffer.to(device).as_strided(shape, stride)

    def fits(self, value: Any, tensor: Tensor) -> bool:
        """Same shape, type and device."""
        torch = self._torch
        return (
            isinstance(value, torch.Tensor)
            and not value.is_nested
            and tuple(value.shape) == tensor.shape
            and _word(value.dtype) == tensor.dtype
            and value.device == self.device(tensor.device)
        )

    def made_valid(self, value: Any, extent: int | None) -> Any:
        """A copy with integers within the extent (zero where it is not known) and finite floats."""
        torch = self._torch
        if value.dtype is torch.bool or value.is_complex():
            return value
        if value.is_floating_point():
            return torch.nan_to_num(value, 0.0, 0.0, 0.0)
        return torch.clamp(value, 0, extent - 1) if extent else torch.zeros_like(value)

    def flatten(self, result: Any) -> list[Any]:
        """Outputs of a call; a list of tensors among them counts as so many outputs."""
        if not isinstance(result, (list, tuple)):
            result = [result]
        found: list[Any] = []
        for one in result:
            found.extend(one if isinstance(one, (list, tuple)) else [one])
        return [one if isinstance(one, self._torch.Tensor) else None for one in found]

    def describe(self, values: Sequence[Any], *, with_values: bool) -> list[dict[str, object]]:
        """Shape, type, device and memory of each, and the range of integer ones."""
        return [self._describe(one, with_values) for one in values if isinstance(one, self._torch.Tensor)]

    def _describe(self, tensor: Any, with_values: bool) -> dict[str, object]:
        facts: dict[str, object] = {
            "shape": sizes_of(tensor),
            "dtype": _word(tensor.dtype),
            "device": str(tensor.device),
        }
        if tensor.layout is not self._torch.strided or tensor.is_nested or tensor.device.type == "meta":
            return facts
        facts["storage"] = tensor.untyped_storage().data_ptr()
        if with_values and facts["dtype"] in INTEGERS and tensor.numel():
            with contextlib.suppress(NotImplementedError):  # the range of uint16, uint32 and uint64
                facts["low"], facts["high"] = (int(one) for one in self._torch.aminmax(tensor))
        return facts

    def synchronize(self) -> None:
        """Wait for the devices in use."""
        synchronize(self._torch)

    def on_device(self) -> bool:
        """Whether CUDA was initialised; asking does not initialise it."""
        return bool(self._torch.cuda.is_initialized())

    def timed(self, call: Callable[[], Any], device: str | None) -> tuple[Any, int, bool]:
        """Launch and wait; CUDA events measure what the device did, the host's clock what the host did."""
        torch = self._torch
        where = self.device(device)
        if where.type != "cuda" and torch.cuda.is_initialized():
            where = torch.device("cuda", torch.cuda.current_device())
        if where.type != "cuda":
            began = time.perf_counter_ns()
            result = call()
            return result, time.perf_counter_ns() - began, False
        with torch.cuda.device(where):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            result = call()
            end.record()
            self.synchronize()
            return result, round(start.elapsed_time(end) * 1e6), True


def _word(dtype: object) -> str:
    return str(dtype).replace("torch.", "")


def _is_row_major(shape: Sequence[int], stride: Sequence[int]) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride)):  # noqa: B905
        if size != 1 and step != expected:
            return False
        expected *= size
    return True


def _shares_places(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether two elements may have the same place (a broadcast dimension, windows that overlap)."""
    reach = 0
    for step, size in sorted((step, size) for size, step in zip(shape, stride) if size > 1):  # noqa: B905
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False

"""Buffers, devices and the clock of MAX."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.worker.dtypes import INTEGERS
from analyzer.replay.worker.plan_file import Tensor


class MaxSide:
    """MAX as the worker uses it.

    Args:
        device: Where all of it goes (null = as recorded).
        note: Told once what was executed elsewhere than recorded.
    """

    def __init__(self, device: str | None, note: Callable[[str], None]) -> None:
        from max import driver, dtype

        self._driver = driver
        self._numpy: Any = importlib.import_module("numpy")  # MAX depends on it
        self._types = dtype.DType
        self._device = device
        self._note = note
        self._devices: dict[int | None, Any] = {}  # by number of the accelerator; null = the cpu

    def device(self, word: str | None) -> Any:
        """The device to use for a recorded one."""
        wanted = self._device or word or "cpu"
        kind, _, number = wanted.partition(":")
        index = None if kind in {"cpu", "host"} else int(number or 0)
        if index is not None and index >= self._driver.accelerator_count():
            self._note(f"MAX has no {wanted} here: executed on the cpu")
            index = None
        if index not in self._devices:
            driver = self._driver
            self._devices[index] = driver.CPU() if index is None else driver.Accelerator(index)
        return self._devices[index]

    def dtype(self, word: str) -> Any:
        """MAX's name of an element type; it has the same words as torch, and ``float8_e4m3fn``."""
        found = getattr(self._types, word, None)
        if not isinstance(found, self._types):
            raise CannotRunError(f"this MAX has no type {word}")
        return found

    def make(self, tensor: Tensor, data: bytes) -> Any:
        """A buffer with these elements, row by row: graphs take no strides."""
        dtype = self.dtype(tensor.dtype)
        if not data:
            return self._driver.Buffer(dtype, tensor.shape).to(self.device(tensor.device))
        raw = self._driver.Buffer.from_numpy(self._numpy.frombuffer(bytearray(data), dtype="uint8"))
        return raw.view(dtype, tensor.shape).to(self.device(tensor.device))

    def fits(self, value: Any, tensor: Tensor) -> bool:
        """Same shape, type and device."""
        return (
            isinstance(value, self._driver.Buffer)
            and tuple(value.shape) == tensor.shape
            and value.dtype == self.dtype(tensor.dtype)
            and value.device == self.device(tensor.device)
        )

    def made_valid(self, value: Any, extent: int | None) -> Any:
        """A copy whose integers are within the extent (zero where it is not known)."""
        if value.dtype.name not in INTEGERS:
            return value
        found = self._numpy.clip(value.to_numpy(), 0, max((extent or 1) - 1, 0))
        return self._driver.Buffer.from_numpy(found).to(value.device)

    def flatten(self, result: Any) -> list[Any]:
        """Outputs of an execution."""
        results = result if isinstance(result, (list, tuple)) else [result]
        return [one if isinstance(one, self._driver.Buffer) else None for one in results]

    def describe(self, values: Sequence[Any], *, with_values: bool) -> list[dict[str, object]]:
        """Shape, type and device of each, and the range of integer ones."""
        return [self._describe(one, with_values) for one in values if isinstance(one, self._driver.Buffer)]

    def _describe(self, buffer: Any, with_values: bool) -> dict[str, object]:
        device = buffer.device
        facts: dict[str, object] = {
            "shape": [int(size) for size in buffer.shape],
            "dtype": buffer.dtype.name,
            "device": "cpu" if device.is_host else f"gpu:{device.id}",
        }
        if with_values and buffer.dtype.name in INTEGERS and buffer.num_elements:
            values = buffer.to_numpy()
            facts["low"], facts["high"] = int(values.min()), int(values.max())
        return facts

    def synchronize(self) -> None:
        """Wait for the accelerators in use."""
        for index, device in self._devices.items():
            if index is not None:
                device.synchronize()

    def on_device(self) -> bool:
        """Whether an accelerator was opened."""
        return any(index is not None for index in self._devices)

    def timed(self, call: Callable[[], Any], _device: str | None) -> tuple[Any, int, bool]:
        """Launch and wait, by the host's clock."""
        began = time.perf_counter_ns()
        result = call()
        self.synchronize()
        return result, time.perf_counter_ns() - began, False

"""Kernels that a program compiles from CUDA source with PyTorch and launches by itself, in the op log.

``torch.cuda._compile_kernel`` gives an object whose call goes to the driver, past every dispatch mode
(observed.md 43). Runs in the recorded program.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from analyzer.record.ops.recorder import Recorder
from analyzer.record.ops.signature import MAX_VALUE, shape_text

_NAME = "_trace_analyze_name"
UNNAMED = "cuda_kernel"


def watch_cuda_kernels(recorder: Recorder, kernel_class: Any = None) -> Callable[[], None]:
    """Log launches of such kernels, if this torch has them.

    Args:
        recorder: Gets the launches.
        kernel_class: ``torch.cuda._utils._CudaKernel``, or a stand-in for it.

    Returns:
        A function that undoes it.
    """
    if kernel_class is None:
        kernel_class = getattr(importlib.import_module("torch.cuda._utils"), "_CudaKernel", None)
    if kernel_class is None:
        return lambda: None
    original = kernel_class.__call__

    def call(
        kernel: Any, grid: Any = (1, 1, 1), block: Any = (1, 1, 1), args: Any = None, *rest: Any, **more: Any
    ) -> Any:
        ident = recorder.launch(_text(_name(kernel), grid, block, args or ()), depth=2)
        result = original(kernel, grid, block, args, *rest, **more)
        device = next((one.device.index for one in args or () if _is_on_device(one)), None)
        recorder.mark(ident, -1 if device is None else device)
        recorder.returned(ident)
        return result

    kernel_class.__call__ = call

    def undo() -> None:
        kernel_class.__call__ = original

    return undo


def _is_on_device(one: Any) -> bool:
    return bool(getattr(one, "is_cuda", False))


def _name(kernel: Any) -> str:
    """What the driver calls it; asked once."""
    known = getattr(kernel, _NAME, None)
    if known is None:
        known = _name_of_driver(getattr(kernel, "func", None))
        setattr(kernel, _NAME, known)
    return str(known)


def _name_of_driver(func: Any) -> str:
    text = ctypes.c_char_p()
    try:
        code = ctypes.CDLL("libcuda.so.1").cuFuncGetName(ctypes.byref(text), func)
    except (OSError, AttributeError, ctypes.ArgumentError):  # no driver, or one from before CUDA 12.3
        return UNNAMED
    return text.value.decode(errors="replace") if code == 0 and text.value else UNNAMED


def _text(name: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> bytes:
    device = next((str(one.device) for one in args if _is_on_device(one)), "cuda")
    pairs = [("grid", "x".join(map(str, grid))), ("block", "x".join(map(str, block)))]
    for number, one in enumerate(args):
        if hasattr(one, "data_ptr"):
            pairs.append((f"arg{number}", shape_text(one.shape, one.dtype)))
        else:
            pairs.append((f"arg{number}", str(one).replace(";", "_").replace("\n", "_")[:MAX_VALUE]))
    details = "".join(f";{key}={value}" for key, value in pairs)
    return f"{name}\n;target={device}{details}".encode(errors="replace")

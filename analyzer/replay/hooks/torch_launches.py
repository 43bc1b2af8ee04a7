# ruff: noqa: TID252  (loaded as `trace_analyze_hooks` where `analyzer` may not be installed)
"""Kernels that a PyTorch program launches past the dispatcher: Triton's, and runtime-compiled CUDA ones."""

from __future__ import annotations

import ctypes
import sys
import threading
from types import ModuleType
from typing import Any

from .tensors import describe, describe_layout
from .watch import Launch, Watch


def watch_triton(jit: ModuleType, watch: Watch) -> None:
    """Called once, when ``triton.runtime.jit`` is imported.

    A user's kernel is launched by ``JITFunction.run``, which has its arguments; kernels that Inductor made
    are launched by a launcher of its own, which calls the launch hooks with a name.
    """
    function, inside = getattr(jit, "JITFunction", None), threading.local()
    if function is None or not hasattr(function, "run"):
        return
    original = function.run

    def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        def call() -> Any:
            inside.kernel = True
            try:
                return original(kernel, *args, **kwargs)
            finally:
                inside.kernel = False

        if kwargs.get("warmup"):
            return call()
        name = getattr(kernel, "__name__", None) or kernel.fn.__name__
        return _launch(watch, str(name), (args, kwargs), call)

    function.run = run
    _watch_launch_hooks(watch, inside)


def _watch_launch_hooks(watch: Watch, inside: threading.local) -> None:
    """``triton.knobs.runtime.launch_enter_hook`` and ``launch_exit_hook`` (Triton 3.4 and newer)."""
    runtime = getattr(sys.modules.get("triton.knobs"), "runtime", None)
    enter, leave = (getattr(runtime, f"launch_{end}_hook", None) for end in ("enter", "exit"))
    if enter is None or leave is None or not hasattr(enter, "add") or not hasattr(leave, "add"):
        return
    open_launches: list[int] = []

    def before(metadata: Any) -> None:
        if getattr(inside, "kernel", False):
            return
        number = watch.begin()
        open_launches.append(number)
        if watch.is_loud(number):
            name = str(metadata.get().get("name"))
            watch.journal.op(number, name, step=watch.step, kind="kernel")
            watch.last_name = name

    def after(_metadata: Any) -> None:
        if getattr(inside, "kernel", False) or not open_launches:
            return
        number = open_launches.pop()
        watch.finish()
        if watch.is_loud(number):
            watch.synchronize()
            watch.journal.done(number)

    enter.add(before)
    leave.add(after)


def watch_cuda_kernels(utils: ModuleType, watch: Watch) -> None:
    """Called once, when ``torch.cuda._utils`` is imported: ``torch.cuda._compile_kernel`` makes them."""
    kernel_class = getattr(utils, "_CudaKernel", None)
    if kernel_class is None:
        return
    original = kernel_class.__call__

    def call(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        name = _symbol(utils, kernel.func) or "a runtime-compiled kernel"
        return _launch(watch, name, (args, kwargs), lambda: original(kernel, *args, **kwargs))

    kernel_class.__call__ = call


def _symbol(utils: ModuleType, function: Any) -> str | None:
    """The name of a driver function handle, from the driver (CUDA 12.3 and newer)."""
    find = getattr(utils, "_get_gpu_runtime_library", None) or getattr(utils, "_get_cuda_library", None)
    ask = getattr(find(), "cuFuncGetName", None) if find is not None else None
    name = ctypes.c_char_p()
    if ask is None or ask(ctypes.byref(name), function):
        return None
    return name.value.decode("utf-8", "replace") if name.value else None


def _launch(watch: Watch, name: str, inputs: Any, call: Any) -> Any:
    number = watch.begin()
    if watch.is_loud(number):
        return watch.run_loud(Launch(number, name, "kernel", describe, inputs, call))
    try:
        result = call()
    except Exception as error:
        watch.failed_quietly(Launch(number, name, "kernel", describe_layout, inputs, call), error)
        raise
    watch.finish()
    return result

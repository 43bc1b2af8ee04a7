# ruff: noqa: TID252  (loaded as `trace_analyze_hooks` where `analyzer` may not be installed)
"""PyTorch: every dispatched op of the whole program passes here."""

from __future__ import annotations

import functools
import threading
import weakref
from types import ModuleType
from typing import Any

from .tensors import describe, describe_layout
from .watch import Launch, Watch


def watch_torch(torch: ModuleType, watch: Watch) -> None:
    """Called once, when ``import torch`` is done."""
    watch.journal.write("torch", version=str(torch.__version__))
    watch.synchronize = lambda: synchronize(torch)
    watch.uses_device = torch.cuda.is_initialized
    modes = _Modes(watch)
    modes.watch_threads()
    if watch.config.marker == "module":
        _watch_modules(torch.nn.Module, watch)
    if watch.config.steps is None or watch.config.marker != "module":
        modes.open()
    else:
        watch.open_window = modes.open  # until then nothing passes here, and nothing is paid


def synchronize(torch: ModuleType) -> None:
    """Wait for the devices in use. A capture must not be disturbed: its launches run later."""
    if not torch.cuda.is_initialized() or torch.cuda.is_current_stream_capturing():
        return
    for device in range(torch.cuda.device_count()):
        if device == torch.cuda.current_device() or torch.cuda.memory_reserved(device):
            torch.cuda.synchronize(device)


def op_name(func: Any) -> str:
    """``aten::embedding``: the name of the schema, without the overload."""
    schema = getattr(func, "_schema", None)
    return str(schema.name) if schema is not None else str(func)


def _mode(watch: Watch) -> Any:
    """A dispatch mode for one thread.

    The class is made here because ``torch`` may not be there when this file is read. Compiled code stays
    compiled: ``is_infra_mode`` and ``ignore_compile_internals`` keep Dynamo from refusing to compile under a
    mode (torch 2.13, ``_dynamo/convert_frame.py``).
    """
    begin, progress = watch.begin, watch.progress

    def dispatch(_mode: object, func: Any, _types: object, args: Any = (), kwargs: Any = None) -> Any:
        number = begin()
        if watch.loud_from <= number:
            return _loud(watch, number, func, args, kwargs or {})
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except Exception as error:
            watch.failed_quietly(
                Launch(number, op_name(func), "op", describe_layout, (args, kwargs), func), error
            )
            raise
        progress[1] += 1
        return result

    yes = classmethod(lambda _cls: True)
    no = classmethod(lambda _cls: False)
    from torch.utils._python_dispatch import TorchDispatchMode

    members = {
        "__torch_dispatch__": dispatch,
        "is_infra_mode": yes,
        "ignore_compile_internals": yes,
        "_should_skip_dynamo": no,  # the wrapper that it asks for costs more than the op
    }
    return type("OpWatch", (TorchDispatchMode,), members)()


def _loud(watch: Watch, number: int, func: Any, args: Any, kwargs: Any) -> Any:
    if not watch.is_loud(number):
        return func(*args, **kwargs)
    call = functools.partial(func, *args, **kwargs)
    schema = getattr(func, "_schema", None)
    mutates = bool(schema is not None and schema.is_mutable)
    return watch.run_loud(Launch(number, op_name(func), "op", describe, (args, kwargs), call, mutates))


class _Modes:
    """The stack of modes belongs to a thread: each gets its own mode, once the window is open."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._is_open = False
        self._has_mode = threading.local()

    def open(self) -> None:
        """From here on the ops of this thread, and of those started later, are seen. Never closed again."""
        self._is_open = True
        if not getattr(self._has_mode, "yes", False):
            self._has_mode.yes = True
            _mode(self._watch).__enter__()

    def watch_threads(self) -> None:
        """Open in each new thread too."""
        original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]  # noqa: SLF001

        def bootstrap(thread: Any) -> None:
            if self._is_open:
                self.open()
            original(thread)

        threading.Thread._bootstrap_inner = bootstrap  # type: ignore[attr-defined]  # noqa: SLF001


def _watch_modules(module_class: Any, watch: Watch) -> None:
    """A step begins when the first outermost module is called again.

    A loss module or a second network called in the same iteration is part of the step. Once that first module
    is gone (built anew each step) the next outermost one takes its place.
    """
    original = module_class.__call__
    state = threading.local()
    marker: list[Any] = [lambda: None]

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(state, "inside", False):
            return original(module, *args, **kwargs)
        if marker[0]() is None:
            marker[0] = weakref.ref(module)
        if marker[0]() is module:
            watch.enter_step()
        state.inside = True
        try:
            return original(module, *args, **kwargs)
        finally:
            state.inside = False

    module_class.__call__ = call
    watch.in_step = lambda: getattr(state, "inside", False)

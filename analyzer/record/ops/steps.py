"""Steps of the recorded program: calls of its outermost module. Runs in the recorded program.

An op log without marks is divided where its sequence repeats, and the layers of a model repeat as well as its
steps do. The program knows better: one execution of the graph is one call of the outermost ``nn.Module``.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from analyzer.record.ops.recorder import Recorder


class _Here(threading.local):
    """Whether this thread is inside a module."""

    inside = False


def watch_steps(recorder: Recorder, module_class: Any = None) -> Callable[[], None]:
    """Count calls of the first outermost module in ``recorder.step``.

    A second network that is called in the same step (a loss, a draft model) is part of it. Once the first
    module is gone (built anew each step), the next outermost one takes its place.

    Args:
        recorder: Its ``step`` is counted up.
        module_class: ``torch.nn.Module``, or a stand-in for it.

    Returns:
        A function that undoes it.
    """
    if module_class is None:
        import torch

        module_class = torch.nn.Module
    original = module_class.__call__
    is_known = original is getattr(module_class, "_wrapped_call_impl", None)
    enter = _Marker(recorder).enter
    module_class.__call__ = (_around_known if is_known else _around)(original, enter)

    def undo() -> None:
        module_class.__call__ = original

    return undo


class _Marker:
    """The module whose calls are counted."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._module: Callable[[], Any] = lambda: None

    def enter(self, module: Any) -> None:
        """An outermost module is called."""
        if self._module() is None:
            self._module = weakref.ref(module)
        if self._module() is module:
            self._recorder.step += 1


def _around(original: Callable[..., Any], enter: Callable[[Any], None]) -> Callable[..., Any]:
    here = _Here()

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        if here.inside:
            return original(module, *args, **kwargs)
        here.inside = True
        try:
            enter(module)
            return original(module, *args, **kwargs)
        finally:
            here.inside = False

    return call


def _around_known(original: Callable[..., Any], enter: Callable[[Any], None]) -> Callable[..., Any]:
    """The same for the torch that we know: inside another module it takes no frame more than torch's own."""
    here = _Here()

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        if here.inside:
            if module._compiled_call_impl is not None:  # noqa: SLF001 - as torch's own does
                return module._compiled_call_impl(*args, **kwargs)  # noqa: SLF001
            return module._call_impl(*args, **kwargs)  # noqa: SLF001
        here.inside = True
        try:
            enter(module)
            return original(module, *args, **kwargs)
        finally:
            here.inside = False

    return call

"""Run a function after a module was imported, whenever the program does that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Callback = Callable[[ModuleType], None]


class AfterImport(MetaPathFinder):
    """Finds nothing by itself: asks the other finders and hangs a callback on the loader they give."""

    def __init__(self, callbacks: Mapping[str, Callback]) -> None:
        self._callbacks = dict(callbacks)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that another finder has for one of our modules, its loader prepared."""
        callback = self._callbacks.get(fullname)
        if callback is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find is not None and finder is not self else None
            if isinstance(spec, ModuleSpec):
                _call_after(spec, callback)
                return spec
        return None


def _call_after(spec: ModuleSpec, callback: Callback) -> None:
    """Replace ``exec_module`` on this one loader: the loader stays what it is (resources, source)."""
    loader = spec.loader
    if loader is None or not hasattr(loader, "exec_module"):
        return
    execute = loader.exec_module

    def execute_then_call(module: ModuleType) -> None:
        execute(module)
        callback(module)

    loader.exec_module = execute_then_call  # type: ignore[method-assign]

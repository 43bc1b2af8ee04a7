"""Starts the op log in a program under ``trace-analyze record``, when the program imports torch or max.

Python runs the first ``sitecustomize`` of its path at start-up; the recorder puts this folder first and sets
``TRACE_ANALYZE_TORCH_OPS``, ``TRACE_ANALYZE_MAX_STEPS`` or both. The program's own ``sitecustomize`` is run
after ours. Nothing here may break the program: whatever goes wrong is said in one line on standard error, and
the program runs without an op log.

The program may have a package ``analyzer`` of its own, or another Python than the recorder's: our modules are
loaded from beside this file, under their names only for as long as that takes.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = Path(__file__).resolve().parent
_PACKAGE = _HERE.parent.parent
_FOLDER = os.environ.get("TRACE_ANALYZE_TORCH_OPS")


def _load_torch_ops() -> Any:
    """Our ``torch_ops`` and what it imports, without leaving anything behind under those names."""
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "analyzer"}
    for name in kept:
        del sys.modules[name]
    try:
        for name, path in (("analyzer", _PACKAGE), ("analyzer.record", _HERE.parent)):
            stub = ModuleType(name)
            stub.__path__ = [str(path)]
            sys.modules[name] = stub
        return importlib.import_module("analyzer.record.torch_ops")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "analyzer"]:
            del sys.modules[name]
        sys.modules.update(kept)


def _start(folder: str) -> None:
    try:
        ring = int(os.environ.get("TRACE_ANALYZE_RING", "4096"))
        inputs = os.environ.get("TRACE_ANALYZE_INPUTS", "none")
        _load_torch_ops().install(folder, ring, inputs)
    except Exception as error:  # noqa: BLE001 - the user's program must run, whatever is wrong with ours
        sys.stderr.write(f"trace-analyze record: no op log of PyTorch: {type(error).__name__}: {error}\n")


def _mark_executions(api: ModuleType) -> None:
    """Print a mark before each execution of a MAX model, in the stream of its op log.

    ``api`` is ``max.engine.api``; ``replay`` runs a captured device graph.
    """
    model = getattr(api, "Model", None)
    numbers = itertools.count(1)

    def marked(call: Callable[..., Any]) -> Callable[..., Any]:
        def execute(*args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(OSError):  # the program closed its standard error
                os.write(2, b"[RECORD] STEP n=%d\n" % next(numbers))
            return call(*args, **kwargs)

        return execute

    for name in ("execute", "replay"):
        if hasattr(model, name):
            setattr(model, name, marked(getattr(model, name)))


class _Finder(importlib.abc.MetaPathFinder):
    """Calls ``start`` right after the first import of a module, then steps aside."""

    def __init__(self, name: str, start: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._start = start
        self._asking = False

    def find_spec(
        self,
        name: str,
        path: Any = None,  # noqa: ARG002 - the signature is Python's
        target: Any = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """The usual answer for the module, with a loader that calls us back; null for all else."""
        if name != self._name or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            # Many programs only ask whether it is there, so this does not mean that it is loaded now.
            spec.loader.exec_module = self._load_and_start(spec.loader)  # type: ignore[method-assign, assignment]
        return spec

    def _load_and_start(self, loader: Any) -> Callable[[ModuleType], None]:
        load = loader.exec_module

        def load_and_start(module: ModuleType) -> None:
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._start(module)

        return load_and_start


def _run_users() -> None:
    """Run the ``sitecustomize`` that ours stands in front of."""
    elsewhere = [path for path in sys.path if Path(path).resolve() != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if _FOLDER:
    sys.meta_path.insert(0, _Finder("torch", lambda _torch: _start(str(_FOLDER))))
if os.environ.get("TRACE_ANALYZE_MAX_STEPS"):
    sys.meta_path.insert(0, _Finder("max.engine.api", _mark_executions))
_run_users()

"""Ways to execute an op of a plan: one module each, found by walking this folder."""

from __future__ import annotations

import importlib
import pkgutil

from analyzer.replay.executors.call import CannotRunError, Executor
from analyzer.replay.worker.plan_file import Op


def all_executors() -> dict[str, Executor]:
    """Those of this folder by the name of their module. None imports torch or max before it is used."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        executor = getattr(importlib.import_module(f"{__name__}.{module.name}"), "EXECUTOR", None)
        if isinstance(executor, Executor):
            found[module.name] = executor
    return found


def find_executor(op: Op) -> Executor:
    """The one that handles an op.

    Raises:
        CannotRunError: There is none.
    """
    for executor in all_executors().values():
        if executor.handles(op):
            return executor
    raise CannotRunError(f"nothing executes {op.call} ({op.executor})")

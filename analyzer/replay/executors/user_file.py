"""The user's file of functions (``--ops``), in the process that executes it, and what of it may be called."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from analyzer.replay.executors.call import CannotRunError


@cache
def load_file(file: str) -> ModuleType:
    """The user's file, executed once.

    Raises:
        CannotRunError: It is no Python file.
    """
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise CannotRunError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_function(file: str, *names: str) -> Callable[..., Any] | None:
    """The function for the first name that has one; null = none.

    By its name in the dictionary ``OPS``, else one that the file makes itself: what it imports for its own
    use (``from os import system``) is not given to a plan by that.
    """
    module = load_file(file)
    own = getattr(module, "OPS", {})
    made = _names_made(file)
    for name in names:
        found = own.get(name) or (getattr(module, name, None) if name in made else None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


@cache
def _names_made(file: str) -> frozenset[str]:
    return frozenset(_made(ast.parse(Path(file).read_bytes(), filename=file)))


def _made(module: ast.Module) -> Iterator[str]:
    """Functions, classes and assigned names at the outermost level; no imported ones."""
    for one in module.body:
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            yield one.name
        targets = one.targets if isinstance(one, ast.Assign) else []
        targets = [one.target] if isinstance(one, ast.AnnAssign) else targets
        yield from (target.id for target in targets if isinstance(target, ast.Name))

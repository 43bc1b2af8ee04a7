"""The user's file of functions (``--ops``), in the process that executes it, and what of it may be called."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

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


class UserFunction(NamedTuple):
    """A function of the user's file. ``name``: its key in ``OPS`` (``in_table``), or its own."""

    call: Callable[..., Any]
    file: str
    name: str
    in_table: bool


def find_function(file: str | None, *names: str) -> UserFunction | None:
    """The function for the first name that has one; null = none, or no file.

    By its name in the dictionary ``OPS``, else one that the file makes itself: what it imports for its own
    use (``from os import system``) is not given to a plan by that.
    """
    if file is None:
        return None
    module = load_file(file)
    table = getattr(module, "OPS", {})
    made = _names_made(file)
    for name in names:
        if callable(found := table.get(name)):
            return UserFunction(found, file, name, in_table=True)
        if name in made and callable(found := getattr(module, name, None)):
            return UserFunction(found, file, name, in_table=False)
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

"""Functions of the user's: from ``--ops my_ops.py``, or anything that can be imported by a dotted path.

A function is called with the arguments of the op by name, and gives a tensor, several, or nothing. The file
may have a dictionary ``OPS`` from names of the log to functions; a function of the same name serves as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from analyzer.replay.executors.call import Bound, CannotRunError, Executor, Prepared
from analyzer.replay.executors.schema_values import Reader
from analyzer.replay.worker.plan_file import Op

_NO_NAME = re.compile(r"arg\d+")


def _handles(op: Op) -> bool:
    return op.executor == "user"


def prepare(op: Op, bound: Sequence[Bound], context: Any) -> Prepared:
    """Find the function. Whether it can be launched again is not known, so it is not."""
    function = _find(op, context.job.user_ops)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for one in bound:
        value = one.value if one.text is None else _read(one.text, context.framework)
        if _NO_NAME.fullmatch(one.name) and not kwargs:
            args.append(value)
        else:
            kwargs[one.name] = value
    _check(op, function, args, kwargs)
    return Prepared(partial(function, *args, **kwargs), repeatable=False)


def _find(op: Op, user_ops: str | None) -> Callable[..., Any]:
    if user_ops is not None:
        module = _load(user_ops)
        own = getattr(module, "OPS", {})
        for name in (op.call, op.name):
            found = own.get(name) or getattr(module, name, None)
            if callable(found):
                return found  # type: ignore[no-any-return]
    found = _imported(op.call) if "." in op.call else None
    if found is None:
        where = f"{user_ops} has no" if user_ops else "without a file of functions nothing executes"
        raise CannotRunError(f"{where} {op.call}")
    return found


@cache
def _load(file: str) -> ModuleType:
    """The user's file, executed once."""
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise CannotRunError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _imported(path: str) -> Callable[..., Any] | None:
    """``package.module.function`` or ``package.module.Class.method``; null = there is none."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:end])
        try:
            found: Any = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
                continue  # this part of the path is no module
            raise
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found if callable(found) else None
    return None


def _read(text: str, framework: Any) -> Any:
    """A text of the log without a schema: number, list, truth, nothing, a type, else the text itself."""
    import torch

    reader = Reader(torch, framework.device)
    if text in {"None", "null"}:
        return None
    if re.fullmatch(r"[\[(]?[-+.\deE]+(,\s*[-+.\deE]+)+,?[\])]?", text):
        return reader.read(text, "List[number]")
    for kind in ("number", "ScalarType"):
        try:
            return reader.read(text, kind)
        except CannotRunError:
            continue
    return text


def _check(op: Op, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    """Arguments that the function does not take are no failure of it."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a built-in without one
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise CannotRunError(f"{op.call} does not take the arguments of the op: {error}") from error


EXECUTOR = Executor("torch", _handles, prepare)

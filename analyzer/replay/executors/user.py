"""Functions of the user's, from ``--ops my_ops.py``, and functions of FlashInfer that it can dump calls of.

Nothing else is called by a name of a plan, a dump or a log: they may be a stranger's.

A function is called with the arguments of the op by name, and gives a tensor, several, or nothing. The file
may have a dictionary ``OPS`` from names of the log to functions; a function of the same name serves as well.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from analyzer.replay.executors.call import Bound, CannotRunError, Executor, Prepared
from analyzer.replay.executors.flashinfer_calls import check_values, find_dumped, is_of_flashinfer
from analyzer.replay.executors.schema_values import Reader
from analyzer.replay.executors.user_file import find_function
from analyzer.replay.worker.plan_file import Op

_NO_NAME = re.compile(r"arg\d+")


def _handles(op: Op) -> bool:
    return op.executor == "user"


def prepare(op: Op, bound: Sequence[Bound], context: Any) -> Prepared:
    """Find the function. Whether it can be launched again is not known, so it is not."""
    own = find_function(context.job.user_ops, op.call, op.name)
    function = own.call if own is not None else _of_flashinfer(op, context.job.user_ops)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for one in bound:
        value = one.value if one.text is None else _read(one.text, context.framework)
        if _NO_NAME.fullmatch(one.name) and not kwargs:
            args.append(value)
        else:
            kwargs[one.name] = value
    if own is None:
        check_values([*args, *kwargs.values()])
    _check(op, function, args, kwargs)
    return Prepared(partial(function, *args, **kwargs), repeatable=False)


def _of_flashinfer(op: Op, user_ops: str | None) -> Callable[..., Any]:
    found = find_dumped(op.call) if is_of_flashinfer(op.call) else None
    if found is None:
        where = f"{user_ops} has no" if user_ops else "without a file of functions nothing executes"
        raise CannotRunError(f"{where} {op.call}")
    return found


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

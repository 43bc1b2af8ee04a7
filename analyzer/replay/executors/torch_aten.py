"""Ops of torch's dispatcher by their schema: ``aten::index_select``, and those that libraries register."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from analyzer.replay.executors.allowed import OWN_NAMESPACES, Loaded, check_op, check_word
from analyzer.replay.executors.call import Bound, CannotRunError, Executor, Prepared
from analyzer.replay.executors.schema_values import Reader, kind_of, place_of, value_of
from analyzer.replay.executors.user_file import load_file
from analyzer.replay.worker.dtypes import size_bytes
from analyzer.replay.worker.plan_file import Op


def _handles(op: Op) -> bool:
    return op.executor == "torch" and "::" in op.call


def prepare(op: Op, bound: Sequence[Bound], context: Any) -> Prepared:
    """Find the overload and its arguments."""
    import torch

    loaded = _given_by_user(torch, context.job, op.call.partition("::")[0])
    overload = _overload(torch, op, bound)
    check_op(overload, loaded)
    schema = overload._schema  # noqa: SLF001  (what torch's own tools read)
    reader = Reader(torch, context.framework.device)
    args, kwargs = _arguments(op, schema, bound, reader, context.framework)
    mutates = bool(schema.is_mutable)
    return Prepared(partial(overload, *args, **kwargs), repeatable=not mutates, mutates=mutates)


def _given_by_user(torch: Any, job: Any, namespace: str) -> set[str]:
    """Load what the user gave; the namespaces of ops that came with it. torch's own need no file of it."""
    before = _before(torch)
    for library in job.custom_extensions:
        if library.endswith(".so"):
            _load(torch, library)
    if job.user_ops is not None and namespace not in OWN_NAMESPACES:
        load_file(job.user_ops)
    return before.namespaces()


@cache
def _before(torch: Any) -> Loaded:
    return Loaded(torch._C._dispatch_get_all_op_names)  # noqa: SLF001  (there is no public list)


def _load(torch: Any, library: str) -> None:
    """A library that does not load says nothing about any op."""
    try:
        torch.ops.load_library(library)
    except OSError as error:
        raise CannotRunError(f"--custom-extensions {library}: cannot be loaded: {error}") from error


def _overload(torch: Any, op: Op, bound: Sequence[Bound]) -> Any:
    packet = _packet(torch, op.call)
    if op.overload:
        overload = getattr(packet, op.overload, None) if op.overload in packet.overloads() else None
        if overload is None:
            raise CannotRunError(f"{op.call} has no overload {op.overload}")
        return overload
    known = [getattr(packet, each) for each in sorted(packet.overloads(), key=_default_first)]
    for overload in known:
        if _takes(overload._schema, bound):  # noqa: SLF001
            return overload
    raise CannotRunError(
        f"no overload of {op.call} takes {', '.join(one.name for one in bound) or 'nothing'}"
    )


def _packet(torch: Any, call: str) -> Any:
    """The op of a name. ``torch.ops`` has functions beside its namespaces; these are no ops."""
    namespace, _, name = call.partition("::")
    space = getattr(torch.ops, namespace, None) if namespace.isidentifier() else None
    is_space = isinstance(space, torch._ops._OpNamespace)  # noqa: SLF001  (no public name)
    packet = getattr(space, name, None) if is_space and name.isidentifier() else None
    if not isinstance(packet, torch._ops.OpOverloadPacket):  # noqa: SLF001
        raise CannotRunError(f"this torch has no {call}")
    return packet


def _default_first(overload: str) -> tuple[bool, bool, str]:
    return overload != "default", "out" in overload.split("_"), overload


def _takes(schema: Any, bound: Sequence[Bound]) -> bool:
    """Whether all given arguments have a place of their kind, and all others a default.

    Dimensions by name are never meant: a log prints numbers.
    """
    if "Dimname" in str(schema):
        return False
    arguments = {one.name: one for one in schema.arguments}
    given = {place_of(one, list(arguments)): one for one in bound}
    if None in given:
        return False
    for name, argument in arguments.items():
        one = given.get(name)
        if one is None:
            if not (argument.has_default_value() or _may_be_none(argument)):
                return False
        elif one.is_tensor != ("Tensor" in kind_of(argument)) and (one.is_tensor or one.value is not None):
            return False
    return True


def _arguments(
    op: Op, schema: Any, bound: Sequence[Bound], reader: Reader, framework: Any
) -> tuple[list[Any], dict[str, Any]]:
    names = [one.name for one in schema.arguments]
    given = {place_of(one, names): one for one in bound}
    unknown = [one.name for one in bound if place_of(one, names) is None]
    if unknown:
        raise CannotRunError(f"{op.call} has no argument {unknown[0]}")
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    outs = 0
    for argument in schema.arguments:
        one = given.get(argument.name)
        if one is not None:
            value = value_of(one, argument, reader)
            check_word(argument.name, value)
        elif argument.is_out:
            value = _output(op, outs, framework)
        elif argument.has_default_value():
            value = argument.default_value
        elif _may_be_none(argument):  # a log leaves out what is None: the bias of a convolution
            value = None
        else:
            raise CannotRunError(f"{op.call} needs {argument.name}, which the plan does not have")
        outs += bool(argument.is_out)
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs


def _may_be_none(argument: Any) -> bool:
    return kind_of(argument).startswith("Optional[")


def _output(op: Op, place: int, framework: Any) -> Any:
    """A tensor to write into, where the log has only its type."""
    if place >= len(op.outputs):
        raise CannotRunError(f"{op.call} writes into an output whose type the plan does not have")
    tensor = op.outputs[place]
    return framework.make(tensor, bytes(size_bytes(tensor.dtype) * math.prod(tensor.shape)))


EXECUTOR = Executor("torch", _handles, prepare)

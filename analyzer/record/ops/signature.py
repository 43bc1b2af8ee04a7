"""The operands of an op as a key (cheap, at every op) and as text (once for each distinct key).

Operands have the op's own argument names, as in ``self=4x1000xfloat32;dim=0;index=17xint64``: ``index`` says
more than the ``B`` of a matmul, and MAX's letter ``C`` would be read as an output. A tensor that is not
contiguous also has ``<name>.strides``; a scalar tensor is its dtype alone. Runs in the recorded program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from analyzer.record.ops.guards import Guards

MAX_VALUE = 60  # characters of a value that is no tensor
INTEGERS = frozenset({"int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool"})
# Allocate or relabel, launch nothing; and what tracing asks for. (Those that say so themselves: ``is_view``.)
_NO_LAUNCH = frozenset(
    {"aten::detach", "aten::_unsafe_view", "aten::lift_fresh", "aten::alias", "aten::is_pinned"}
)


PLAIN = frozenset({int, float, bool, str, type(None)})


class OpInfo:
    """What does not change between the launches of one overload."""

    __slots__ = ("guards", "launches", "name", "names", "overload", "written")

    def __init__(self, func: Any, guards: Guards) -> None:
        self.guards = guards
        schema = getattr(func, "_schema", None)  # a higher-order op (while_loop) has none
        full = str(schema.name) if schema is not None else f"higher_order::{func.name()}"
        self.name = "".join(char if char.isalnum() or char in "_.:" else "_" for char in full)
        self.overload = str(schema.overload_name) if schema is not None else ""
        self.names = tuple(argument.name for argument in schema.arguments) if schema is not None else ()
        arguments = schema.arguments if schema is not None else ()
        self.written = frozenset(one.name for one in arguments if one.is_write)
        self.launches = not (getattr(func, "is_view", False) or self.name in _NO_LAUNCH)

    def argument(self, index: int) -> str:
        """Name of a positional argument."""
        return self.names[index] if index < len(self.names) else f"arg{index}"


class Operands:
    """Reads operands; is given ``torch.Tensor`` and ``torch.strided``, as torch is not imported here."""

    def __init__(self, tensor: type, strided: object) -> None:
        self._tensor = tensor
        self._strided = strided

    def key(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> list[Hashable]:
        """All that the text depends on."""
        parts: list[Hashable] = []
        add = parts.append
        tensor = self._tensor
        for arg in args:
            kind = arg.__class__
            if kind in PLAIN:
                add(kind)  # 1, 1.0 and True are equal but do not read the same
                add(arg)
            elif kind is tensor or isinstance(arg, tensor):
                try:
                    add(arg.shape)
                    add(arg.dtype)
                    add(arg.device)
                    if not arg.is_contiguous():
                        add(arg.stride())
                except RuntimeError:  # nested or sparse
                    add(self._part(arg))
            else:
                add(self._part(arg))
        if kwargs:
            for name, arg in kwargs.items():
                add(name)
                add(self._part(arg))
        return parts

    def _part(self, arg: Any) -> Hashable:
        if isinstance(arg, self._tensor):
            nested = arg.is_nested  # type: ignore[attr-defined]
            shape = None if nested else arg.shape  # type: ignore[attr-defined]
            return (shape, arg.dtype, arg.device, arg.layout, self._strides(arg))  # type: ignore[attr-defined]
        if arg.__class__ in PLAIN:
            return (arg.__class__, arg)
        if isinstance(arg, (list, tuple)):
            return tuple([self._part(one) for one in arg])
        return str(arg)

    def _strides(self, tensor: Any) -> tuple[int, ...] | None:
        if tensor.layout is not self._strided or tensor.is_nested or tensor.is_contiguous():
            return None
        return tuple(tensor.stride())

    def is_integer(self, tensor: Any) -> bool:
        """Whether values of it can go out of range."""
        return _word(tensor.dtype) in INTEGERS

    def all_tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
        """The tensors of a call, those in lists too."""
        for _, one in self.tensors([("", arg) for arg in [*args, *kwargs.values()]]):
            yield one

    def text(self, info: OpInfo, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """Name, line end, and the closing line of the record: target first, then the operands."""
        named = [(info.argument(index), arg) for index, arg in enumerate(args)]
        pairs = [*self._pairs([*named, *kwargs.items()])]
        if info.overload:
            pairs.append(("overload", info.overload))
        details = "".join(f";{key}={value}" for key, value in pairs)
        return f"{info.name}\n;target={self.device(args, kwargs)}{details}".encode(errors="replace")

    def device(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Where the op runs: the first accelerator among its tensors, else ``device=``, else cpu."""
        devices = [str(one.device) for one in self.all_tensors(args, kwargs)]
        asked = kwargs.get("device")
        other = [name for name in devices if name != "cpu"]
        return other[0] if other else str(asked) if asked is not None else "cpu"

    def tensors(self, named: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """The tensors among named arguments, those in lists as ``<name>.<index>``."""
        for name, arg in named:
            if isinstance(arg, self._tensor):
                yield name, arg
            elif isinstance(arg, (list, tuple)):
                yield from self.tensors([(f"{name}.{index}", one) for index, one in enumerate(arg)])

    def _pairs(self, named: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
        for name, arg in named:
            tensors = list(self.tensors([(name, arg)]))
            for inner, one in tensors:
                yield inner, shape_text(("nested",) if one.is_nested else one.shape, one.dtype)
                strides = self._strides(one)
                if strides is not None:
                    yield f"{inner}.strides", ",".join(map(str, strides))
            if not tensors and arg is not None:
                yield name, _value(arg)


def shape_text(shape: Sequence[Any], dtype: object) -> str:
    """``4x1000xfloat32``; a scalar is ``float32``."""
    return "x".join([*map(str, shape), _word(dtype)])


def by_name(
    operands: Operands,
    info: OpInfo,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    wanted: Callable[[Any], bool],
) -> list[tuple[str, Any]]:
    """The tensors of a call with their argument names, those that are ``wanted``."""
    named = [(info.argument(index), arg) for index, arg in enumerate(args)]
    return [(name, one) for name, one in operands.tensors([*named, *kwargs.items()]) if wanted(one)]


def _word(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


def _value(arg: object) -> str:
    text = _word(arg) if not isinstance(arg, (list, tuple)) else ",".join(_word(one) for one in arg)
    text = "".join("_" if char in ";\n\r" else char for char in text)[:MAX_VALUE]
    return text or "_"

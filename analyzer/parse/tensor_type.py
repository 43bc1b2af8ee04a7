"""MLIR types and printed shapes as ``TensorInfo`` (``grammars/mlir_type.lark``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from analyzer.grammar import Reader, first_child, token_text, token_type
from analyzer.numbers import MAX_EXTENT, need_integer
from analyzer.schema import TensorInfo

# Types whose parameters begin with a dims list, and those that begin with 128x512xf32.
LISTED = frozenset({"!mo.tensor"})
SHAPED = frozenset({"!mgp.tensor", "!mgp.tensor_spec", "tensor", "memref"})

Signature = tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]


def parse_type(text: str) -> TensorInfo | None:
    """Read one type.

    Args:
        text: ``!mo.tensor<[64, "batch"], f32, gpu:0>``, ``!mgp.tensor<128xf32, <"gpu", 0>>``, ...

    Returns:
        Shape (null extent = dynamic or symbolic), dtype spelled as in the text, device
        (``gpu:0``; null = not printed), role ``input``. ``None`` for a type that is no tensor of
        known rank: scalars, ``index``, chains, buffers, lists, opaque and unranked types.

    Raises:
        GrammarError: The text is no type.
    """
    return _TYPES.read(text)


def parse_signature(text: str) -> Signature:
    """Read ``(T, T) -> T`` or ``(T) -> (T, T)``; the inputs may be missing.

    Returns:
        Inputs (role ``input``) and outputs (role ``output``) in order. Types that are no tensors
        are left out, so positions are not operand numbers.

    Raises:
        GrammarError: The text is no signature.
    """
    return _SIGNATURES.read(text)


def parse_shape_text(text: str) -> TensorInfo:
    """Read the shape form of op details: ``1x2048x8192xbfloat16`` or ``1x2048x8192``.

    Returns:
        The tensor, role ``input``, device null. ``dtype`` is ``""`` where the text prints none; a
        lone dtype is a tensor of rank 0.

    Raises:
        GrammarError: The text is no shape.
    """
    return _SHAPES.read(text)


class _Group(NamedTuple):
    """A bracketed list of parameters; ``opening`` tells the kind of brackets."""

    opening: str
    params: list[list[Any]]  # each parameter is its atoms: tokens, groups, TensorInfo of 4x8xf32


def _extent(text: str) -> int | None:
    return None if text == "?" else need_integer(text, MAX_EXTENT)


def _listed(params: list[list[Any]]) -> tuple[list[int | None], str] | None:
    """Shape and dtype of ``[64, "batch"], f32``."""
    if len(params) < 2 or not _is_group(params[0], "[") or not _is_token(params[1], "NAME"):
        return None
    dims = params[0][0].params
    shape = [need_integer(dim[0], MAX_EXTENT) if _is_token(dim, "INT") else None for dim in dims]
    return shape, token_text(params[1][0])


def _shaped(params: list[list[Any]]) -> tuple[list[int | None], str] | None:
    """Shape and dtype of ``64x128xf32``, or of ``f32`` alone (rank 0)."""
    if not params:
        return None
    first = params[0]
    if len(first) == 1 and isinstance(first[0], TensorInfo):
        return first[0].shape, first[0].dtype
    return ([], token_text(first[0])) if _is_token(first, "NAME") else None


def _device(params: list[list[Any]]) -> str | None:
    """``gpu:0`` from a parameter ``gpu:0`` or ``<"gpu", 0>``."""
    for param in params:
        if _is_token(param, "DEVICE"):
            return token_text(param[0])
        if _is_group(param, "<") and len(param[0].params) == 2:
            kind, ordinal = param[0].params
            if _is_token(kind, "STRING") and _is_token(ordinal, "INT"):
                return f"{kind[0][1:-1]}:{ordinal[0]}"
    return None


def _is_token(param: list[Any], terminal: str) -> bool:
    return len(param) == 1 and token_type(param[0]) == terminal


def _is_group(param: list[Any], opening: str) -> bool:
    return len(param) == 1 and isinstance(param[0], _Group) and param[0].opening == opening


def _tensor(head: str, params: list[list[Any]]) -> TensorInfo | None:
    found = _listed(params) if head in LISTED else _shaped(params) if head in SHAPED else None
    if found is None:
        return None
    shape, dtype = found
    return TensorInfo(shape=shape, dtype=dtype, device=_device(params[1:]))


def _output(tensor: TensorInfo) -> TensorInfo:
    return TensorInfo(shape=tensor.shape, dtype=tensor.dtype, device=tensor.device, role="output")


def _type(children: list[Any]) -> TensorInfo | None:
    params = children[1].params if len(children) > 1 else []
    return _tensor(token_text(children[0]), params)


def _sized(children: list[Any]) -> TensorInfo:
    """``4x8xf32`` or ``4x8``: the last token is a dtype or one more extent."""
    *extents, last = children
    shape = [_extent(extent.removesuffix("x")) for extent in extents]
    if token_type(last) == "LAST_DIM":
        return TensorInfo(shape=[*shape, _extent(last)], dtype="")
    return TensorInfo(shape=shape, dtype=token_text(last))


def _only_tensors(children: list[TensorInfo | None]) -> list[TensorInfo]:
    return [tensor for tensor in children if tensor is not None]


def _signature(children: list[list[TensorInfo]]) -> Signature:
    inputs, outputs = children if len(children) == 2 else ([], children[0])
    return tuple(inputs), tuple(map(_output, outputs))


_RULES: Mapping[str, Callable[[list[Any]], Any]] = {
    "start": first_child,
    "type": _type,
    "angle": partial(_Group, "<"),
    "square": partial(_Group, "["),
    "round": partial(_Group, "("),
    "curly": partial(_Group, "{"),
    "param": list,
    "shaped": _sized,
    "shape_text": _sized,
    "types": _only_tensors,
    "result": _only_tensors,
    "signature": _signature,
}
_TYPES = Reader[TensorInfo | None]("mlir_type", _RULES)
_SIGNATURES = Reader[Signature]("mlir_type", _RULES, start="signature")
_SHAPES = Reader[TensorInfo]("mlir_type", _RULES, start="shape_text")

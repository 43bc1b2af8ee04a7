"""Inductor's kernels and extern calls by name: what can be called in their place.

A fused kernel exists only as generated code, which no log holds. The same lookup, or the same single
elementwise op, can be made by PyTorch's own op: a stand-in. An extern call is PyTorch's op itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from analyzer.parse.printed_tensor import is_integer
from analyzer.replay.plan import PlanArgument, PlanTensor

_FUSED = re.compile(r"(?:triton_[a-z]+|cpp)_fused_(\w*?)(?:_[0-9]+)?$")
_EXTERN = re.compile(r"(?:aoti_torch_(?:cpu|cuda|xpu|mps)_|extern_kernels\.)(\w+?)(?:_out)?$")
_OF_LIBRARY = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?$")
# Change no value: they are in the name because their index arithmetic was fused in.
_LAYOUT = (
    "_unsafe_view", "unsqueeze", "squeeze", "transpose", "permute", "expand", "clone", "slice", "view", "t",
)  # fmt: skip
_UNARY = frozenset({
    "abs", "ceil", "cos", "erf", "exp", "floor", "gelu", "log", "log1p", "log2", "neg", "reciprocal", "relu",
    "round", "rsqrt", "sigmoid", "silu", "sin", "sqrt", "tanh",
})  # fmt: skip
# Inputs by the names of the schema. The wrapper passes the output first, then these.
_EXTERN_INPUTS = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "addmm": ("self", "mat1", "mat2"),
    "baddbmm": ("self", "batch1", "batch2"),
    "_int_mm": ("self", "mat2"),
}
NOT_BY_ITSELF = (
    "a kernel of Inductor exists only as generated code, which the log does not hold: run the program "
    "(`--replay -- COMMAND`)"
)

_NO_TABLE = (
    "what it looks up, or the table, is not among the tensors that the printer shows: weights that "
    "the model was compiled with are not"
)


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of a launch. ``written``: the kernel writes it, so that it holds no input."""

    name: str
    tensor: PlanTensor
    written: bool


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What is called in the place of a kernel. ``why_not``: nothing can be."""

    call: str
    overload: str | None = None
    arguments: tuple[PlanArgument, ...] = ()
    stand_in: str | None = None
    why_not: str | None = None


def find_call(kernel: str, tensors: Sequence[Named]) -> Call | None:
    """The call for a kernel of Inductor, null = somebody wrote the kernel by hand.

    Args:
        kernel: Its name, without namespace for shims.
        tensors: As the launch was given them, in order.
    """
    if (found := _FUSED.match(kernel)) is not None:
        return _fused(kernel, found[1], tensors)
    if (found := _EXTERN.match(kernel)) is not None:
        return _extern(kernel, found[1], tensors)
    if (found := _OF_LIBRARY.match(kernel)) is not None:
        return _library(found[1], found[2], found[3], tensors)
    return None


def _fused(kernel: str, words: str, tensors: Sequence[Named]) -> Call:
    if "embedding" in words and tensors:
        return _embedding(words, tensors) or Call(call=kernel, why_not=_NO_TABLE)
    rest = words
    for layout in _LAYOUT:
        rest = re.sub(rf"(?:^|_){layout}(?=_|$)", "", rest)
    rest = rest.strip("_")
    inputs = [one for one in tensors if not one.written] or list(tensors)[:1]
    if rest in _UNARY and len(inputs) == 1:
        argument = PlanArgument(name="self", tensor=inputs[0].tensor)
        stand_in = f"aten::{rest} in the place of Inductor's own kernel"
        return Call(call=f"aten::{rest}", overload="default", arguments=(argument,), stand_in=stand_in)
    return Call(call=kernel, why_not=NOT_BY_ITSELF)


def _embedding(words: str, tensors: Sequence[Named]) -> Call | None:
    """Table and indices, where they can only be one tensor each: null = they cannot be told."""
    indices = [one for one in tensors if is_integer(one.tensor.dtype)]
    others = [one for one in tensors if not is_integer(one.tensor.dtype) and not one.written]
    widths = {one.tensor.shape[-1] for one in tensors if one.written and one.tensor.shape}
    tables = [
        one for one in others if len(one.tensor.shape) == 2 and (not widths or one.tensor.shape[-1] in widths)
    ]
    if len(indices) != 1 or len(tables) != 1:
        return None
    rows = tables[0].tensor.shape[0]
    index = msgspec.structs.replace(indices[0].tensor, extent=rows)
    more = f", without what is fused to it ({words})" if words != "embedding" else ""
    return Call(
        call="aten::embedding",
        overload="default",
        arguments=(
            PlanArgument(name="weight", tensor=tables[0].tensor),
            PlanArgument(name="indices", tensor=index),
        ),
        stand_in=f"aten::embedding in the place of Inductor's own kernel{more}",
    )


def _extern(kernel: str, name: str, tensors: Sequence[Named]) -> Call:
    wanted = _EXTERN_INPUTS.get(name)
    inputs = list(tensors)
    if kernel.endswith("_out") and inputs:
        inputs = inputs[1:]  # the shim is given its output first
    elif kernel.startswith("extern_kernels.") and wanted and len(inputs) == len(wanted) + 1:
        inputs = inputs[:-1]  # the Python wrapper passes ``out=`` last
    if wanted is None or len(inputs) != len(wanted):
        shown = ", ".join(one.name for one in tensors) or "none"
        return Call(
            call=f"aten::{name}",
            why_not=f"the printer does not show all of its arguments (shown: {shown}): views and scalars are "
            "left out",
        )
    arguments = tuple(
        PlanArgument(name=argument, tensor=one.tensor) for argument, one in zip(wanted, inputs, strict=True)
    )
    return Call(call=f"aten::{name}", overload="default", arguments=arguments)


def _library(namespace: str, name: str, overload: str | None, tensors: Sequence[Named]) -> Call:
    """A fallback to an op of a library: which argument is which is not printed."""
    call = f"{namespace}::{name}"
    if not tensors:
        return Call(call=call, overload=overload, why_not="the printer shows none of its arguments")
    why_not = "the printer names its arguments as the generated code does, not as the op does"
    return Call(call=call, overload=overload, why_not=why_not)

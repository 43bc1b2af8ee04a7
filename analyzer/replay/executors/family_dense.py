"""Families without indices: elementwise, matmul, norm, softmax, reduction, attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.executors.family_parts import Call, Operand, Part
from analyzer.replay.executors.operands import scalar

_EPSILON = 1e-5  # of norms whose log does not say; the value decides nothing about a fault


def _need(part: Part, operands: list[Operand], count: int) -> list[Any]:
    if len(operands) < count:
        raise CannotRunError(f"{part.word} takes {count} operands, the plan has {len(operands)}")
    return [one.value for one in operands[:count]]


def _unary(name: str) -> Call:
    def call(part: Part, operands: list[Operand]) -> tuple[Any, int]:
        function: Any = part.torch
        for word in name.split("."):
            function = getattr(function, word)
        return function(*_need(part, operands, 1)), 1

    return call


def _binary(name: str) -> Call:
    """A missing second operand is a constant that the log does not have: one."""

    def call(part: Part, operands: list[Operand]) -> tuple[Any, int]:
        left = _need(part, operands, 1)[0]
        if len(operands) > 1:
            return getattr(part.torch, name)(left, operands[1].value), 2
        other = scalar(part.scalars, "other", "exponent", "value", "arg1")
        constant = part.torch.ones((), dtype=left.dtype, device=left.device)
        return getattr(part.torch, name)(left, constant if other is None else constant * other), 1

    return call


def _where(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    condition, first, second = _need(part, operands, 3)
    return part.torch.where(condition.bool(), first, second), 3


def _clamp(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    (value,) = _need(part, operands, 1)
    return part.torch.clamp(value, part.number("min", default=-1), part.number("max", default=1)), 1


def _matmul(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """Transposed where the log says so, or where nothing else fits (vendor calls hide the layout)."""
    left, right = _need(part, operands, 2)
    transposed = scalar(part.scalars, "transpose_b")
    fits = left.shape[-1] == right.shape[-2 if right.dim() > 1 else 0]
    if transposed or (not fits and transposed is None and left.shape[-1] == right.shape[-1]):
        right = right.mT
    return part.torch.matmul(left, right), 2


def _linear(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    value, weight = _need(part, operands, 2)
    bias = operands[2].value if len(operands) > 2 else None
    return part.torch.nn.functional.linear(value, weight, bias), 3 if bias is not None else 2


def _addmm(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    return part.torch.addmm(*_need(part, operands, 3)), 3


def _layer_norm(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    value = _need(part, operands, 1)[0]
    size = value.shape[-1:]
    scales = [one.value for one in operands[1:3] if one.value.shape == size]
    weight, bias = (*scales, None, None)[:2]
    epsilon = part.number("epsilon", "eps", default=_EPSILON)
    return part.torch.nn.functional.layer_norm(value, size, weight, bias, epsilon), 1 + len(scales)


def _rms_norm(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    value = _need(part, operands, 1)[0]
    scale = [one.value for one in operands[1:2] if one.value.shape == value.shape[-1:]]
    wide = value.float()
    epsilon = part.number("epsilon", "eps", default=_EPSILON)
    normed = (wide * part.torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)).to(value.dtype)
    return (normed * scale[0] if scale else normed), 1 + len(scale)


def _group_norm(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    value, weight, bias = _need(part, operands, 3)
    groups = int(part.number("num_groups", "group", "groups", default=1))
    epsilon = part.number("epsilon", "eps", default=_EPSILON)
    return part.torch.nn.functional.group_norm(value, groups, weight, bias, epsilon), 3


def _softmax(name: str) -> Call:
    def call(part: Part, operands: list[Operand]) -> tuple[Any, int]:
        (value,) = _need(part, operands, 1)
        return getattr(part.torch, name)(value, part.axis()), 1

    return call


def _reduction(name: str, *, numbers: bool = True) -> Call:
    """Along the axis that is said, else along those that the result lacks; the dimension stays."""

    def call(part: Part, operands: list[Operand]) -> tuple[Any, int]:
        (value,) = _need(part, operands, 1)
        axes = _reduced_axes(part, value)
        keep = part.shape() is None or len(part.shape() or ()) == value.dim()
        if numbers and name in {"sum", "mean", "amax", "amin", "var"}:
            return getattr(part.torch, name)(value, dim=axes, keepdim=keep), 1
        return getattr(part.torch, name)(value, dim=axes[0], keepdim=keep), 1

    return call


def _reduced_axes(part: Part, value: Any) -> list[int]:
    said, shape = scalar(part.scalars, "axis", "dim"), part.shape()
    if isinstance(said, int) or shape is None:
        return [said if isinstance(said, int) else -1]
    if len(shape) == value.dim():
        axes = [place for place, size in enumerate(value.shape) if size != shape[place]]
        return axes or [-1]
    if not shape:
        return list(range(value.dim()))
    return [-1]


def _cumulative(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    (value,) = _need(part, operands, 1)
    return part.torch.cumsum(value, part.axis()), 1


def _attention(part: Part, operands: list[Operand]) -> tuple[Any, int]:
    """Query, key and value; what else the op takes (a mask, scales) does not address memory by value."""
    floats = [one for one in operands if one.value.is_floating_point()]
    query, key, value = _need(part, floats, 3)
    call = part.torch.nn.functional.scaled_dot_product_attention
    return call(query, key, value), len(operands)


_SAME_NAME = (
    *(
        "relu",
        "sigmoid",
        "tanh",
        "exp",
        "exp2",
        "log",
        "log2",
        "log1p",
        "expm1",
        "sqrt",
        "rsqrt",
        "neg",
        "abs",
    ),
    *("erf", "sin", "cos", "floor", "ceil", "round", "trunc", "reciprocal", "square", "logical_not", "isnan"),
    *("isinf", "sign", "acos", "atanh"),
)
_UNARY: Mapping[str, str] = {
    **{name: name for name in _SAME_NAME},
    "gelu": "nn.functional.gelu",
    "silu": "nn.functional.silu",
    "swish": "nn.functional.silu",
    "softplus": "nn.functional.softplus",
    "is_nan": "isnan",
    "is_inf": "isinf",
    "not": "logical_not",
    "negate": "neg",
    "negative": "neg",
    "isqrt": "rsqrt",
}
_BINARY: Mapping[str, str] = {
    **{name: name for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "remainder", "fmod")},
    **{
        name: name
        for name in ("eq", "ne", "gt", "ge", "lt", "le", "logical_and", "logical_or", "logical_xor")
    },
    **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "atan2")},
    "truediv": "div",
    "mod": "remainder",
    "max": "maximum",
    "min": "minimum",
    "and": "logical_and",
    "or": "logical_or",
    "xor": "logical_xor",
    "equal": "eq",
    "not_equal": "ne",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "floor_div": "floor_divide",
}


def _either(reduction: Call, binary: Call) -> Call:
    """``max`` of one tensor is a reduction, of two it is elementwise."""

    def call(part: Part, operands: list[Operand]) -> tuple[Any, int]:
        return (reduction if len(operands) < 2 else binary)(part, operands)

    return call


_LARGEST, _SMALLEST = _reduction("amax"), _reduction("amin")
_NAMES: Mapping[Call, tuple[str, ...]] = {
    _matmul: ("matmul", "mm", "bmm", "batch_matmul", "linalg.matmul", "gemm"),
    _linear: ("linear",),
    _addmm: ("addmm", "addmm_out"),
    _where: ("where", "select"),
    _clamp: ("clamp", "clip"),
    _layer_norm: ("layer_norm", "native_layer_norm"),
    _rms_norm: ("rms_norm", "fused_rms_norm"),
    _group_norm: ("group_norm", "native_group_norm"),
    _softmax("softmax"): ("softmax", "safe_softmax"),
    _softmax("log_softmax"): ("log_softmax", "logsoftmax"),
    _reduction("sum"): ("sum", "reduce.add", "reduce.sum"),
    _reduction("mean"): ("mean",),
    _reduction("prod"): ("prod", "reduce.mul"),
    _reduction("var"): ("var",),
    _LARGEST: ("amax", "reduce.max"),
    _SMALLEST: ("amin", "reduce.min"),
    _reduction("argmax"): ("argmax", "arg_max"),
    _reduction("argmin"): ("argmin", "arg_min"),
    _cumulative: ("cumsum",),
    _attention: (
        *("attention", "flash_attention", "sdpa", "mha", "scaled_dot_product_attention"),
        *("scaled_dot_product_flash_attention", "scaled_dot_product_efficient_attention"),
        *("scaled_dot_product_cudnn_attention", "scaled_dot_product_flash_attention_for_cpu"),
    ),
}
DENSE: Mapping[str, Call] = {
    **{word: _unary(name) for word, name in _UNARY.items()},
    **{word: _binary(name) for word, name in _BINARY.items()},
    **{word: call for call, words in _NAMES.items() for word in words},
    "max": _either(_LARGEST, _binary("maximum")),
    "min": _either(_SMALLEST, _binary("minimum")),
}

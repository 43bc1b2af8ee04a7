"""Names of ``mo.*`` ops as calls of ``max.graph.ops``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from analyzer.replay.executors.call import CannotRunError
from analyzer.replay.executors.operands import integers, scalar
from analyzer.replay.worker.plan_file import Tensor


class GraphPart(NamedTuple):
    """One op inside the graph.

    ``word``: see ``word_of``. ``operands``: what it may take, in order; ``outputs``: types of the results,
    known of the last part alone.
    """

    word: str
    operands: Sequence[Any]
    scalars: Mapping[str, Any]
    outputs: Sequence[Tensor]
    device: Any
    side: Any

    def axis(self, default: int = -1) -> int:
        """The dimension that the op works along."""
        found = scalar(self.scalars, "axis", "dim")
        return default if found is None else int(found)

    def shape(self) -> tuple[int, ...]:
        """Of the result.

        Raises:
            CannotRunError: It is not known.
        """
        if not self.outputs:
            raise CannotRunError(f"the shape of the result of {self.word} is not known")
        return self.outputs[0].shape


_Call = Callable[[Any, GraphPart], Any]


def call_part(part: GraphPart) -> tuple[list[Any], int]:
    """Add the op to the graph. Gives its results and how many operands it took.

    Raises:
        CannotRunError: Nothing here says how, or an operand is missing.
    """
    from max.graph import ops

    arity, call = _find(ops, part.word)
    if arity is None:
        arity = len(part.operands)
    if len(part.operands) < arity:
        raise CannotRunError(f"{part.word} takes {arity} operands, the plan has {len(part.operands)}")
    result = call(ops, part._replace(operands=list(part.operands[:arity])))
    return list(result) if isinstance(result, (list, tuple)) else [result], arity


def _find(ops: Any, word: str) -> tuple[int | None, _Call]:
    """Number of operands (null = all there are) and the call."""
    if word in _CALLS:
        return _CALLS[word]
    name = _RENAMED.get(word, word)
    if name in _UNARY | _BINARY and hasattr(ops, name):
        return (1 if name in _UNARY else 2), lambda ops, part: getattr(ops, name)(*part.operands)
    raise CannotRunError(f"nothing says how MAX is called for {word}")


_UNARY = frozenset(
    {
        *("abs", "acos", "atanh", "ceil", "cos", "erf", "exp", "floor", "gelu", "is_inf", "is_nan", "log"),
        *("log1p", "logical_not", "logsoftmax", "negate", "nonzero", "relu", "round", "rsqrt", "sigmoid"),
        *("silu", "sin", "sqrt", "tanh", "trunc"),
    }
)
_BINARY = frozenset(
    {
        *("add", "div", "equal", "greater", "greater_equal", "less", "less_equal", "logical_and"),
        *("logical_or", "logical_xor", "max", "min", "mod", "mul", "not_equal", "outer", "pow", "sub"),
    }
)
_RENAMED = {
    "and": "logical_and",
    "or": "logical_or",
    "xor": "logical_xor",
    "not": "logical_not",
    "neg": "negate",
    "negative": "negate",
    "isqrt": "rsqrt",
    "reduce.log_softmax": "logsoftmax",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "lt": "less",
    "le": "less_equal",
    "maximum": "max",
    "minimum": "min",
}


def _reduced(name: str) -> _Call:
    return lambda ops, part: getattr(ops, name)(part.operands[0], axis=part.axis())


def _data_first(part: GraphPart) -> list[Any]:
    """Data, then indices. Inside of a fused op the result before, which stands first, can be the indices."""
    first, second = part.operands
    swapped = first.dtype.is_integral() and second.dtype.is_float()
    return [second, first] if swapped else [first, second]


def _scattered(name: str) -> _Call:
    """MAX's order is input, updates, indices."""
    return lambda ops, part: getattr(ops, name)(*part.operands, axis=part.axis(0))


def _matmul(ops: Any, part: GraphPart) -> Any:
    left, right = part.operands
    if scalar(part.scalars, "transpose_b"):
        right = ops.transpose(right, -1, -2)
    return ops.matmul(left, right)


def _epsilon(part: GraphPart) -> float:
    found = scalar(part.scalars, "epsilon", "eps")
    return 1e-5 if found is None else float(found)


def _transpose(ops: Any, part: GraphPart) -> Any:
    (value,) = part.operands
    order = integers(part.scalars, "perm", "dims", "permutation")
    if order is not None:
        return ops.permute(value, order)
    first, second = (scalar(part.scalars, f"axis_{place}") for place in (1, 2))
    return ops.transpose(value, -1 if first is None else first, -2 if second is None else second)


def _cast(_ops: Any, part: GraphPart) -> Any:
    if not part.outputs:
        raise CannotRunError("the type that is cast to is not known")
    return part.operands[0].cast(part.side.dtype(part.outputs[0].dtype))


def _split(ops: Any, part: GraphPart) -> Any:
    (value,) = part.operands
    axis = part.axis(0)
    return ops.split(value, [one.shape[axis] for one in part.outputs], axis)


def _slice(ops: Any, part: GraphPart) -> Any:
    """The first elements of each dimension, as many as the result has: any of them are alike."""
    return ops.slice_tensor(part.operands[0], [slice(0, size) for size in part.shape()])


def _top_k(ops: Any, part: GraphPart) -> Any:
    axis = part.axis()
    count = scalar(part.scalars, "k")
    return ops.top_k(part.operands[0], part.shape()[axis] if count is None else int(count), axis)


def _reshape(ops: Any, part: GraphPart) -> Any:
    (value,) = part.operands
    if not part.outputs:  # inside of a fused op: the parts around it take any shape
        return value
    if math.prod(int(size) for size in value.shape) != math.prod(part.shape()):
        raise CannotRunError(f"{part.word} to a shape of another number of elements")
    return ops.reshape(value, part.shape())


def _broadcast(ops: Any, part: GraphPart) -> Any:
    return ops.broadcast_to(part.operands[0], part.shape()) if part.outputs else part.operands[0]


_REDUCTIONS = ("sum", "mean", "prod", "argmax", "argmin", "cumsum")
_CALLS: Mapping[str, tuple[int | None, _Call]] = {
    **{f"reduce.{name}": (1, _reduced(name)) for name in _REDUCTIONS},
    **{name: (1, _reduced(name)) for name in _REDUCTIONS},
    "reduce.add": (1, _reduced("sum")),
    "reduce.max": (1, _reduced("max")),
    "reduce.min": (1, _reduced("min")),
    "reduce.softmax": (1, lambda ops, part: ops.softmax(part.operands[0], axis=part.axis())),
    "softmax": (1, lambda ops, part: ops.softmax(part.operands[0], axis=part.axis())),
    "matmul": (2, _matmul),
    "batch_matmul": (2, _matmul),
    "gather": (2, lambda ops, part: ops.gather(*_data_first(part), axis=part.axis(0))),
    "gather_nd": (2, lambda ops, part: ops.gather_nd(*_data_first(part))),
    **{name: (3, _scattered(name)) for name in ("scatter", "scatter_add", "scatter_max", "scatter_min")},
    "scatter_nd": (3, lambda ops, part: ops.scatter_nd(*part.operands)),
    "layer_norm": (3, lambda ops, part: ops.layer_norm(*part.operands, epsilon=_epsilon(part))),
    "reduce.layer_norm": (3, lambda ops, part: ops.layer_norm(*part.operands, epsilon=_epsilon(part))),
    "rms_norm": (2, lambda ops, part: ops.rms_norm(*part.operands, epsilon=_epsilon(part))),
    "reduce.rms_norm": (2, lambda ops, part: ops.rms_norm(*part.operands, epsilon=_epsilon(part))),
    "concat": (None, lambda ops, part: ops.concat(part.operands, axis=part.axis(0))),
    "stack": (None, lambda ops, part: ops.stack(part.operands, axis=part.axis(0))),
    "transpose": (1, _transpose),
    "permute": (1, _transpose),
    "cast": (1, _cast),
    "split": (1, _split),
    "slice": (1, _slice),
    "top_k": (1, _top_k),
    "arg_sort": (1, lambda ops, part: ops.argsort(part.operands[0])),
    "argsort": (1, lambda ops, part: ops.argsort(part.operands[0])),
    "select": (3, lambda ops, part: ops.where(*part.operands)),
    "where": (3, lambda ops, part: ops.where(*part.operands)),
    "broadcast_to": (1, _broadcast),
    **dict.fromkeys(
        ("reshape", "squeeze", "unsqueeze", "squeeze_shape", "unsqueeze_shape", "view"), (1, _reshape)
    ),
}

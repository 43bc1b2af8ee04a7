"""Which ops of a log may be executed: those whose schema shows that they only compute.

The log may be a stranger's. An op is judged by what it can be given, not by its name: tensors, numbers,
types, devices and layouts reach no file, no network and no process. A text does so only where its meaning is
a word of a closed list (a reduction, a rounding mode). What registers itself beside torch's own ops is
called only if the user loaded it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from analyzer.replay.executors.call import CannotRunError

OWN_NAMESPACES = frozenset({"aten", "prims", "quantized", "quantized_decomposed", "mkldnn"})
_PLAIN = frozenset(
    {
        *("Tensor", "int", "float", "bool", "complex", "number", "Scalar"),
        *("SymInt", "SymFloat", "SymBool", "ScalarType", "Device", "Layout", "MemoryFormat", "Generator"),
    }
)
_WRAPPED = re.compile(r"(?:Optional|List)\[(.*)\]")
# They hand out or take memory as a number or a capsule.
_RAW = re.compile(r"data_ptr|dlpack|blob|(?:^|_)ipc(?:_|$)", re.IGNORECASE)
_REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "max", "min", "none", "add", "multiply")
_FP8 = ("auto", "fp8", "fp8_e4m3", "fp8_e5m2", "bfloat16", "half", "float16", "int8")
_POINTWISE = (
    *("none", "relu", "sigmoid", "tanh", "swish", "silu", "gelu", "leaky_relu", "hardtanh", "hardswish"),
    *("hardsigmoid", "add", "sub", "mul", "div", "linear"),
)
# Arguments that are words, and the words: of torch's own schemas and of the servers' cache kernels.
_WORDS: Mapping[str, Collection[str]] = {
    "reduce": _REDUCTIONS,
    "reduction": _REDUCTIONS,
    "rounding_mode": ("floor", "trunc"),
    "padding": ("same", "valid"),
    "padding_mode": ("zeros", "constant", "reflect", "replicate", "circular", "border", "reflection"),
    "pad_mode": ("constant", "reflect", "replicate", "circular"),
    "padding_side": ("left", "right"),
    "mode": (
        *("constant", "reflect", "replicate", "circular", "reduced", "complete", "r"),
        *("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"),
    ),
    "approximate": ("none", "tanh"),
    "algorithm": ("", "none", "tanh"),
    "unary_algorithm": ("", "none", "tanh"),
    "activation": _POINTWISE,
    "attr": _POINTWISE,
    "binary_attr": _POINTWISE,
    "unary_attr": _POINTWISE,
    "side": ("left", "right"),
    "UPLO": ("L", "U", "l", "u"),
    "driver": ("gels", "gelsy", "gelsd", "gelss", "gesvd", "gesvdj", "gesvda"),
    "norm": ("forward", "backward", "ortho"),
    "ord": ("fro", "nuc"),
    "p": ("fro", "nuc"),
    "indexing": ("ij", "xy"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
    "kv_cache_dtype": _FP8,
}
_SHAPED: Mapping[str, re.Pattern[str]] = {"equation": re.compile(r"[A-Za-z.,> -]{1,120}")}  # of einsum


def check_op(overload: Any, loaded: Collection[str]) -> None:
    """Refuse an op that could do more than compute.

    Args:
        overload: Of torch's dispatcher.
        loaded: Namespaces that came with the user's own libraries and functions.

    Raises:
        CannotRunError: With the reason.
    """
    schema = overload._schema  # noqa: SLF001  (what torch's own tools read)
    namespace, _, name = schema.name.partition("::")
    if namespace not in OWN_NAMESPACES and namespace not in loaded:
        raise CannotRunError(
            f"{schema.name} is of a library that was not asked for: give it with --custom-extensions, or "
            "import it in the file of --ops"
        )
    if _RAW.search(name):
        raise CannotRunError(f"{schema.name} handles memory by its address: a log does not have it run")
    for place, one in enumerate([*schema.arguments, *schema.returns]):
        what = one.name if place < len(schema.arguments) else "its result"
        kind = str(getattr(one, "real_type", None) or one.type)
        if not _is_harmless(kind, what):
            raise CannotRunError(
                f"{schema.name} takes or gives more than tensors and numbers ({what}: {kind}): a log does "
                "not have it run"
            )


def _is_harmless(kind: str, name: str) -> bool:
    while (found := _WRAPPED.fullmatch(kind)) is not None:
        kind = found[1]
    return kind in _PLAIN or (kind == "str" and (name in _WORDS or name in _SHAPED))


def check_word(name: str, value: Any) -> None:
    """Refuse a text that is none of the words of its argument.

    Args:
        name: Of the argument, by the schema.
        value: As it would be passed.

    Raises:
        CannotRunError: It is another text.
    """
    for one in value if isinstance(value, (list, tuple)) else (value,):
        if not isinstance(one, str) or one in _WORDS.get(name, ()):
            continue
        shape = _SHAPED.get(name)
        if shape is None or shape.fullmatch(one) is None:
            raise CannotRunError(f"{one[:40]!r} is no word that {name} can be")


def namespaces_of(names: Iterable[str]) -> set[str]:
    """``aten::add.Tensor`` -> ``aten``."""
    return {name.partition("::")[0] for name in names}


class Loaded:
    """Namespaces that came into the process with what the user gave; one a process."""

    def __init__(self, registered: Callable[[], Sequence[str]]) -> None:
        """``registered``: names of all ops that the dispatcher has now."""
        self._registered = registered
        self._before = namespaces_of(registered())

    def namespaces(self) -> set[str]:
        """Those that were not there before."""
        return namespaces_of(self._registered()) - self._before

"""What the names of ops in different logs have in common, and scalars by any of their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PREFIXES = re.compile(
    r"^(?:torch\.ops\.)?(?:aten\.|prims\.|extern_kernels\.|aoti_torch_(?:cpu|cuda|xpu|mps)_|aoti_torch_"
    r"|CUBLAS_|r?mo\.|rmo\.mo\.|mogg\.|static\.)+"
)
_SUFFIXES = re.compile(
    r"(?<!\.default)(?<!_out)(?<!\.out)(?<!\.Tensor)(?<!\.Scalar)"  # only where a run of them begins
    r"(?:\.default|_out|\.out|\.Tensor|\.Scalar)++$"
)


def word_of(call: str) -> str:
    """``mo.reduce.softmax`` -> ``reduce.softmax``; ``aoti_torch_cuda_mm_out`` -> ``mm``."""
    return _SUFFIXES.sub("", _PREFIXES.sub("", call.strip()))


def is_of_max(call: str) -> bool:
    """Whether it is named as MAX names ops: its semantics are MAX's."""
    return bool(re.match(r"(?:r?mo|static|mogg|reduce)\.", call.strip()))


def scalar(scalars: Mapping[str, Any], *names: str) -> Any:
    """The first of these that is known; a text is read as number or truth. Null = none is known."""
    for name in names:
        value = scalars.get(name)
        if value is not None:
            return _read(value) if isinstance(value, str) else value
    return None


def _read(text: str) -> Any:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def integers(scalars: Mapping[str, Any], *names: str) -> list[int] | None:
    """The same for a list: ``0,2,1`` or ``[0, 2, 1]``."""
    value = next((scalars[name] for name in names if scalars.get(name) is not None), None)
    if value is None:
        return None
    if isinstance(value, str):
        return [int(one) for one in re.findall(r"-?\d+", value)]
    return [int(one) for one in (value if isinstance(value, (list, tuple)) else [value])]

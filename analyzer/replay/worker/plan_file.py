"""The plan as the worker reads it: names, meanings and defaults of ``analyzer.replay.plan``, no msgspec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Tensor(NamedTuple):
    """See ``PlanTensor``."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    stride: tuple[int, ...] | None = None
    fidelity: str = "made"
    file: str | None = None
    key: str | None = None
    values: tuple[Any, ...] | None = None
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    from_op: int | None = None
    from_output: int = 0
    extent: int | None = None


class Argument(NamedTuple):
    """See ``PlanArgument``."""

    name: str
    tensor: Tensor | None = None
    tensors: tuple[Tensor | None, ...] | None = None
    value: Any = None
    text: str | None = None

    def all_tensors(self) -> list[Tensor]:
        """The tensor, or those of the list."""
        return [one for one in (self.tensor, *(self.tensors or ())) if one is not None]


class Op(NamedTuple):
    """See ``PlanOp``. ``source`` stays a dictionary."""

    number: int
    name: str
    executor: str
    call: str
    overload: str | None = None
    parts: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    device: str | None = None
    step: int | None = None
    log_id: int | None = None
    line: int | None = None
    source: Mapping[str, Any] | None = None
    suspect: int | None = None
    stand_in: str | None = None
    why_not: str | None = None


def read_ops(path: Path) -> dict[int, Op]:
    """The ops of a plan by number; fields that this version does not know are left out.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no JSON.
        TypeError: A field without a default is missing.
    """
    plan = json.loads(path.read_text(encoding="utf-8"))
    return {op.number: op for op in map(_op, plan.get("ops", ()))}


def _op(raw: Mapping[str, Any]) -> Op:
    values = _known(Op, raw)
    values["arguments"] = tuple(map(_argument, raw.get("arguments", ())))
    values["outputs"] = tuple(map(_tensor, raw.get("outputs", ())))
    values["parts"] = tuple(raw.get("parts", ()))
    return Op(**values)


def _argument(raw: Mapping[str, Any]) -> Argument:
    values = _known(Argument, raw)
    if raw.get("tensor") is not None:
        values["tensor"] = _tensor(raw["tensor"])
    if raw.get("tensors") is not None:
        values["tensors"] = tuple(None if one is None else _tensor(one) for one in raw["tensors"])
    return Argument(**values)


def _tensor(raw: Mapping[str, Any]) -> Tensor:
    values = _known(Tensor, raw)
    for name in ("shape", "stride", "values"):
        if values.get(name) is not None:
            values[name] = tuple(values[name])
    return Tensor(**values)


def _known(kind: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: raw[name] for name in kind._fields if name in raw}

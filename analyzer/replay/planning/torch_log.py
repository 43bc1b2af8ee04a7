"""Ops of a recorded PyTorch op log as calls: ``self=4x1000xfloat32;dim=0;index=17xint64;index.min=0``.

What the recorder leaves out is at the default of the op's schema: None at its place, and arguments that
the dispatcher dropped because they are at their default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite

import msgspec

from analyzer.record.ops.signature import MAX_VALUE
from analyzer.replay.plan import PlanArgument, PlanOp, PlanTensor
from analyzer.replay.planning.captures import SavedTensor, read_whole, with_saved
from analyzer.replay.planning.indices import Operands, find_extents
from analyzer.replay.planning.window import Detail, LoggedOp

DTYPES = frozenset({
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16",
    "uint32", "uint64", "bool", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
})  # fmt: skip
_TENSOR = re.compile(r"((?:[0-9]+x)*)([a-z][a-z0-9_]*)")
_OF_TENSOR = (".strides", ".min", ".max", ".from")
_NOT_OPERANDS = frozenset({"overload", "capture"})
_NOT_REBUILT = frozenset({"generator"})  # a random op draws other numbers anyway
_CUTS = frozenset({60, MAX_VALUE})  # a value of this length may have been cut (60: the first logs)
# Which operand they check.
_OF_DOMAIN = {
    "multinomial": "self",
    "bernoulli": "self",
    "bernoulli_": "p",
    "binomial": "prob",
    "poisson": "self",
    "binary_cross_entropy": "self",
    "_assert_async": "self",
    "cholesky": "self",
    "linalg_cholesky": "self",
}
# They raise for what another op found: a bad status, a false condition.
_CHECKS = frozenset({"_linalg_check_errors", "_assert_async", "_functional_assert_async", "_assert_scalar"})
_COLLECTIVES = ("c10d::", "_c10d_functional::", "c10d_functional::")
_NONE = "None"
_PLACE_DIGITS = 5  # of a place in a list of tensors; more is a damaged log
_EMPTY = "_"  # how the recorder writes an empty list or text


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    """Details taken apart: tensors by operand name (``tensors.0``), texts by argument name, in order."""

    tensors: dict[str, PlanTensor]
    texts: dict[str, str]
    ranges: dict[str, dict[str, str]]


def is_torch_op(op: LoggedOp) -> bool:
    """Whether the record is of an op that PyTorch's dispatcher has called."""
    return "::" in op.name and not op.printed


def plan_torch_op(op: LoggedOp, number: int, saved: Mapping[str, SavedTensor]) -> PlanOp:
    """One recorded op.

    Args:
        op: Its record.
        number: Its place in the plan.
        saved: Its saved inputs.
    """
    plan = PlanOp(
        number=number,
        name=op.name,
        executor="torch",
        call=op.name,
        overload=op.detail("overload") or "default",
    )
    reason = _why_not_called(op)
    if reason is not None:
        return msgspec.structs.replace(plan, why_not=reason)
    call = _take_apart(op)
    reason = _why_not_rebuilt(call) or _why_not_made(op.name, call)
    if reason is not None:
        return msgspec.structs.replace(plan, why_not=reason)
    extents = find_extents(op.name, operands_of(call.tensors, call.texts))
    tensors = {
        name: with_saved(_with_range(one, call.ranges.get(name), extents.get(name)), saved.get(name))
        for name, one in call.tensors.items()
    }
    return msgspec.structs.replace(plan, arguments=tuple(_arguments(tensors, call.texts, op.details)))


def operands_of(tensors: Mapping[str, PlanTensor], texts: Mapping[str, str]) -> Operands:
    """Of a call, as the rules of indices take them."""
    return Operands(
        shapes={name: one.shape for name, one in tensors.items()},
        dtypes={name: one.dtype for name, one in tensors.items()},
        texts=texts,
    )


def _why_not_called(op: LoggedOp) -> str | None:
    if op.name.rpartition("::")[2] in _CHECKS:
        return "it only checks what an op before it left: that one is the one to look at"
    if op.name.startswith(_COLLECTIVES):
        return "a collective needs the other ranks"
    if op.name.startswith("higher_order::"):
        return "it is called with functions, which a log does not hold"
    if not op.details:
        return "the record has no operands (cut off, or a tensor that refused to be described)"
    if op.facts.ref.device == "unknown":
        return "its operands refused to be described when it was recorded"
    return None


def _why_not_rebuilt(call: _Call) -> str | None:
    for name, one in call.tensors.items():
        if one.shape and min(one.shape) < 0:
            return f"{name} is a nested tensor: its sizes are not in the log"
    for name, text in call.texts.items():
        if len(text) in _CUTS:
            return f"the value of {name} may be cut off in the log ({len(text)} characters)"
        if text.startswith("<") and text.endswith(">"):
            return f"{name} is an object that a log cannot hold ({text})"
    for name in call.tensors:
        base, found, place = name.rpartition(".")
        if found and (not place.isdecimal() or len(place) > _PLACE_DIGITS):
            return f"{name} is not a place in the list {base}"
    deep = next((name for name in call.tensors if name.count(".") > 1), None)
    return f"{deep} stands in a list of lists: which ones were empty is not in the log" if deep else None


def _why_not_made(name: str, call: _Call) -> str | None:
    """Of floats no values are recorded, and these ops refuse what is not in their domain."""
    operand = _OF_DOMAIN.get(name.rpartition("::")[2], "")
    tensor = call.tensors.get(operand)
    if tensor is None or not tensor.dtype.startswith(("float", "bfloat")):
        return None
    return f"the op checks the values of {operand}, which the log does not have"


def _take_apart(op: LoggedOp) -> _Call:
    tensors: dict[str, PlanTensor] = {}
    texts: dict[str, str] = {}
    ranges: dict[str, dict[str, str]] = {}
    device = op.facts.ref.device or op.detail("target") or "cpu"
    for key, value in _operands(op.details):
        base, found, what = key.rpartition(".")
        if found and f".{what}" in _OF_TENSOR and base in tensors:
            ranges.setdefault(base, {})[what] = value
            continue
        tensor = read_operand(key, value, device)
        if tensor is not None:
            tensors[key] = tensor
        else:
            texts[key] = _NONE if key in _NOT_REBUILT else value
    return _Call(tensors=tensors, texts=texts, ranges=ranges)


def _operands(details: Sequence[Detail]) -> Sequence[Detail]:
    """Without where it runs (the first ``target``: a loss has an argument of that name) and our own words."""
    skip = 1 if details and details[0][0] == "target" else 0
    return [(key, value) for key, value in details[skip:] if key not in _NOT_OPERANDS]


def read_operand(key: str, value: str, device: str) -> PlanTensor | None:
    """``17xint64`` as a tensor; null = no tensor. A dtype alone is a scalar tensor, save as a ``dtype``."""
    if value.startswith("nestedx"):
        return PlanTensor(shape=(-1,), dtype=value.removeprefix("nestedx"), device=device)
    found = _TENSOR.fullmatch(value)
    if found is None or found[2] not in DTYPES or (not found[1] and key.endswith("dtype")):
        return None
    sizes = [read_whole(one) for one in found[1].split("x") if one]
    shape = tuple(size for size in sizes if size is not None)
    if len(shape) < len(sizes):
        return None
    return PlanTensor(shape=shape, dtype=found[2], device=device)


def _with_range(tensor: PlanTensor, told: Mapping[str, str] | None, extent: int | None) -> PlanTensor:
    told = told or {}
    strides = [read_whole(one) for one in told.get("strides", "").split(",")]
    low, high = read_whole(told.get("min")), read_whole(told.get("max"))
    return msgspec.structs.replace(
        tensor,
        stride=tuple(one for one in strides if one is not None) if None not in strides else None,
        fidelity="statistics" if low is not None and high is not None else "made",
        low=low,
        high=high,
        extent=extent,
    )


def _arguments(
    tensors: Mapping[str, PlanTensor], texts: Mapping[str, str], details: Sequence[Detail]
) -> list[PlanArgument]:
    """In the order of the log: positional ones first, as the schema has them."""
    lists: dict[str, dict[int, PlanTensor]] = {}
    for name, one in tensors.items():
        base, _, place = name.rpartition(".")
        if base and place.isdecimal():
            lists.setdefault(base, {})[int(place)] = one
    found: dict[str, PlanArgument] = {}
    for key, _ in _operands(details):
        base, _, place = key.rpartition(".")
        if key in texts:
            found[key] = text_argument(key, texts[key])
        elif place.isdecimal() and base in lists:
            of_list = lists[base]
            whole = tuple(of_list.get(index) for index in range(max(of_list) + 1))
            found[base] = PlanArgument(name=base, tensors=whole)
        elif key in tensors:
            found[key] = PlanArgument(name=key, tensor=tensors[key])
    return list(found.values())


def text_argument(name: str, text: str) -> PlanArgument:
    """A value that is no tensor: a number, else its text; an empty list has none."""
    if text == _EMPTY:
        return PlanArgument(name=name, value=[])
    if text == _NONE:
        return PlanArgument(name=name)
    number = _number(text)
    return PlanArgument(name=name, text=text) if number is None else PlanArgument(name=name, value=number)


def _number(text: str) -> int | float | None:
    """A number as one, so that it also serves where the schema wants a tensor (``x * 0.5``).

    Null = it is none, or none that JSON can hold.
    """
    whole = read_whole(text)
    if whole is not None or text.isdecimal():
        return whole
    try:
        return real if isfinite(real := float(text)) else None
    except ValueError:
        return None

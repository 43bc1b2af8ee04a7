"""Families of ops as calls of torch: what ``mo.*``, Inductor and AOTInductor names mean.

The calls do the same to indices, shapes and types as the op of the log but are other code than its kernel;
the plan says so (``stand_in``). A fused op runs as its parts, innermost first, each fed by the one before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from analyzer.replay.executors.call import Bound, CannotRunError, Executor, Prepared
from analyzer.replay.executors.family_dense import DENSE
from analyzer.replay.executors.family_index import INDEX
from analyzer.replay.executors.family_layout import LAYOUT
from analyzer.replay.executors.family_parts import Call, Operand, Part, data_and_index_first
from analyzer.replay.executors.operands import is_of_max, word_of
from analyzer.replay.worker.plan_file import Op


def _handles(op: Op) -> bool:
    return op.executor == "torch" and "::" not in op.call


def prepare(op: Op, bound: Sequence[Bound], context: Any) -> Prepared:
    """Find the call of each part; all of them are one launch of the op."""
    import torch

    scalars = {one.name: one.value if one.text is None else one.text for one in bound if not one.is_tensor}
    operands = _operands(op, bound)
    calls = op.parts or (op.call,)
    steps: list[tuple[Call, Part]] = []
    for place, call in enumerate(calls):
        word = word_of(call)
        outputs = op.outputs if place == len(calls) - 1 else ()
        of_max = is_of_max(call) or is_of_max(op.call)
        part = Part(torch, word, of_max, scalars, outputs, context.framework.device)
        steps.append((find_call(word), part))
    _try_without_values(steps, operands)
    return Prepared(lambda: _run(steps, operands), mutates=False)


def _try_without_values(steps: Sequence[tuple[Call, Part]], operands: Sequence[Operand]) -> None:
    """On the ``meta`` device, where nothing is computed: operands that are missing are found out here.

    Shapes that do not fit, and what ``meta`` does not know, are left to the launch.
    """
    with contextlib.suppress(RuntimeError, TypeError, ValueError, IndexError):
        _run(steps, [one._replace(value=one.value.to("meta")) for one in operands])


def find_call(word: str) -> Call:
    """The call of a family.

    Raises:
        CannotRunError: It belongs to none.
    """
    plain = word if word in _TABLE else word.lower().strip("_")
    for name in (plain, plain.rpartition(".")[2]):
        if name in _TABLE:
            return _TABLE[name]
    raise CannotRunError(f"nothing says what {word} does in terms of torch")


def _operands(op: Op, bound: Sequence[Bound]) -> list[Operand]:
    found: list[Operand] = []
    for argument, one in zip(op.arguments, bound):  # noqa: B905  (Python 3.9)
        plans = [each for each in argument.tensors or (argument.tensor,) if each is not None]
        found.extend(map(Operand, one.tensors(), plans))
    return found


def _run(steps: Sequence[tuple[Call, Part]], operands: Sequence[Operand]) -> Any:
    """Each part takes the result before it and as many further operands as it needs."""
    left = list(operands)
    result: Any = None
    for place, (call, part) in enumerate(steps):
        if place:
            left.insert(0, Operand(result[0] if isinstance(result, (list, tuple)) else result))
        if call in _INDEXING:
            left = data_and_index_first(left)
        result, used = call(part, left)
        left = left[used:]
    return result


_INDEXING = frozenset(INDEX.values())
_TABLE = {**DENSE, **LAYOUT, **INDEX}
EXECUTOR = Executor("torch", _handles, prepare)

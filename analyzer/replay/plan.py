"""The plan of an op replay: what is executed again, with which inputs, how true to the crash they are.

A plan is a JSON file that a person can read and edit. The worker (``analyzer.replay.worker``) reads it
with the standard library alone, so that it runs in the interpreter of the server; keep names and meanings
in step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from analyzer.errors import ReplaySetupError
from analyzer.replay_result import Fidelity
from analyzer.vocabulary import SourceFrame, Value

PLAN_VERSION = "1"

Executor = Literal["torch", "max", "user"]
Material = Literal["capture", "aoti_dump", "flashinfer_dump", "printed_values", "types"]


class PlanTensor(Value, forbid_unknown_fields=True):
    """A tensor to be made before the launch.

    ``dtype``: torch's word without ``torch.`` (``float32``, ``int64``, ``bfloat16``, ``bool``).
    ``stride`` null = contiguous. ``fidelity``: where its values come from. ``recorded``: from ``file``
    (``.safetensors``, or ``.pt`` as ``torch.save`` writes it; ``key`` = name inside, null = the file is
    one tensor) or from ``values`` (flat). ``statistics``: made between ``low`` and ``high``. ``made``:
    valid by construction. ``from_op``: the plan's op that writes it, output ``from_output``; where that
    op runs too, its result is used. ``extent``: it holds indices of a dimension of this size (null = it
    holds none, or of a size that is not known): made values stay in ``0 .. extent - 1``.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    stride: tuple[int, ...] | None = None
    fidelity: Fidelity = "made"
    file: str | None = None
    key: str | None = None
    values: tuple[float | int | bool | str, ...] | None = None
    low: float | int | None = None
    high: float | int | None = None
    mean: float | None = None
    from_op: int | None = None
    from_output: int = 0
    extent: int | None = None


class PlanArgument(Value, forbid_unknown_fields=True):
    """One argument by the op's own name (``self``, ``index``; ``arg0`` where it has none).

    One of: ``tensor``, ``tensors`` (a list; null entries stay null), ``value`` (number, text, list or
    null). ``text``: the value as the log printed it, to be read by the op's schema (``0,1``, ``True``,
    ``bfloat16``).
    """

    name: str
    tensor: PlanTensor | None = None
    tensors: tuple[PlanTensor | None, ...] | None = None
    value: float | int | bool | str | list[float | int | bool | str] | None = None
    text: str | None = None


class PlanOp(Value, forbid_unknown_fields=True):
    """One launch of the window.

    ``number``: its place in the plan, from 0, and its name in the journal. ``name``: as in the log.
    ``call``: what is executed: ``aten::index_select`` with ``overload`` (torch), ``mo.matmul`` or
    ``custom::paged_lookup`` (max), the name of a function (user). A fused op is executed as its ``parts``
    (calls, innermost first), each fed by the one before. ``arguments``: what a schema has besides is at its
    default, or None where it has none (a recorded log leaves out None). ``stand_in``: the call does the same
    to the indices but is other code than the kernel of the log (null = the op itself). ``log_id``,
    ``line``: of its launch. ``suspect``: its rank among the suspects (null = none). ``why_not``: why it
    cannot be executed (null = it can).
    """

    number: int
    name: str
    executor: Executor
    call: str
    overload: str | None = None
    parts: tuple[str, ...] = ()
    arguments: tuple[PlanArgument, ...] = ()
    outputs: tuple[PlanTensor, ...] = ()
    device: str | None = None
    step: int | None = None
    log_id: int | None = None
    line: int | None = None
    source: SourceFrame | None = None
    suspect: int | None = None
    stand_in: str | None = None
    why_not: str | None = None

    def tensors(self) -> list[PlanTensor]:
        """All tensors of the arguments, in their order."""
        found: list[PlanTensor] = []
        for one in self.arguments:
            if one.tensor is not None:
                found.append(one.tensor)
            found.extend(tensor for tensor in one.tensors or () if tensor is not None)
        return found

    def fidelity(self) -> Fidelity:
        """Of its least true integer or boolean input (what goes out of range), else of its least true one."""
        order: tuple[Fidelity, ...] = ("recorded", "statistics", "made")
        tensors = self.tensors()
        whole = [one for one in tensors if one.dtype.startswith(("int", "uint", "bool"))] or tensors
        return max((one.fidelity for one in whole), key=order.index, default="recorded")


class Plan(Value, forbid_unknown_fields=True):
    """The ops of the window that are executed again, in launch order.

    ``log``: the input it came from. ``material``: what the inputs come from. ``notes``: what was left
    out, and why.
    """

    version: str = PLAN_VERSION
    log: str | None = None
    material: tuple[Material, ...] = ()
    ops: tuple[PlanOp, ...] = ()
    notes: tuple[str, ...] = ()

    def runnable(self) -> tuple[int, ...]:
        """Numbers of the ops that can be executed."""
        return tuple(op.number for op in self.ops if op.why_not is None)


def read_plan(path: Path) -> Plan:
    """Read a plan, as written or as edited.

    Raises:
        ReplaySetupError: It is missing, no plan, of another version, or an input comes from an op that is
            not above its own.
    """
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise ReplaySetupError(f"{path}: the plan cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise ReplaySetupError(f"{path}: not a plan of an op replay: {error}") from error
    if plan.version != PLAN_VERSION:
        raise ReplaySetupError(f"{path}: plan version {plan.version}, this program reads {PLAN_VERSION}")
    numbers = [op.number for op in plan.ops]
    if numbers != list(range(len(numbers))):
        raise ReplaySetupError(f"{path}: the ops must be numbered 0, 1, 2, ... in their order")
    for op in plan.ops:
        for tensor in op.tensors():
            if tensor.from_op is not None and not 0 <= tensor.from_op < op.number:
                raise ReplaySetupError(
                    f"{path}: op {op.number} takes an input from op {tensor.from_op}, which is not above it"
                )
    return plan


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan as indented JSON with all its fields, so that each can be edited."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")

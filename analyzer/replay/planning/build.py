"""From an open analysis to the plan of an op replay: the ops of the window with their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from analyzer.pipeline import Analysis
from analyzer.replay.plan import Material, Plan, PlanOp
from analyzer.replay.planning.captures import (
    Captures,
    SavedTensor,
    folder_beside,
    pid_at,
    pids_of_blocks,
)
from analyzer.replay.planning.torch_log import is_torch_op, plan_torch_op
from analyzer.replay.planning.window import LoggedOp, ops_of_window

_NO_OPERANDS = "the log does not tell its operands: record the run (`trace-analyze record --for torch`)"


def build_plan(analysis: Analysis, materials: Sequence[Path] = ()) -> Plan:
    """Plan the execution of the suspicious window.

    Args:
        analysis: Open: its inputs are read again.
        materials: Files and folders that the user gives: saved inputs of ``record``, tensor dumps, IR files.
            The folder that ``record`` made beside a log is found by itself.

    Returns:
        All outer ops of the window in launch order, each with a call or the reason why it has none. Without
        a window (an exact report) the suspects.
    """
    ops = ops_of_window(analysis)
    planner = _Planner(analysis, materials)
    planned = tuple(_placed(op, planner.plan(op, number)) for number, op in enumerate(ops))
    return Plan(
        log=_log(analysis, ops),
        material=_materials(planned),
        ops=planned,
        notes=tuple(planner.notes if planned else [*planner.notes, "no op is suspected: there is no window"]),
    )


class _Planner:
    """Gives each op to the reader of its kind."""

    def __init__(self, analysis: Analysis, materials: Sequence[Path]) -> None:
        self._analysis = analysis
        self.notes: list[str] = []
        self._captures = Captures(_capture_folders(analysis, materials))
        self._blocks: dict[int, list[tuple[int, int]]] = {}

    def plan(self, op: LoggedOp, number: int) -> PlanOp:
        """One op of the window."""
        if is_torch_op(op):
            return plan_torch_op(op, number, self._saved(op))
        return PlanOp(number=number, name=op.name, executor="user", call=op.name, why_not=_NO_OPERANDS)

    def _saved(self, op: LoggedOp) -> Mapping[str, SavedTensor]:
        if not self._captures:
            return {}
        ref = op.facts.ref
        if ref.input not in self._blocks:
            self._blocks[ref.input] = pids_of_blocks(self._analysis.known.readers[ref.input])
        return self._captures.inputs(op.name, ref.id, pid_at(self._blocks[ref.input], ref.line or 0))


def _capture_folders(analysis: Analysis, materials: Sequence[Path]) -> list[Path]:
    beside = [folder_beside(Path(one.path)) for one in analysis.result.inputs if one.path != "-"]
    given = [path for path in materials if path.is_dir()]
    return [folder for folder in beside if folder is not None] + given


def _placed(op: LoggedOp, plan: PlanOp) -> PlanOp:
    """The planned op with its place in the log."""
    ref = op.facts.ref
    return msgspec.structs.replace(
        plan,
        device=ref.device,
        step=ref.step,
        log_id=ref.id,
        line=ref.line,
        source=next(iter(op.facts.source), None),
        suspect=op.suspect,
    )


def _log(analysis: Analysis, ops: Sequence[LoggedOp]) -> str | None:
    """The input with the ops."""
    inputs = analysis.result.inputs
    if not inputs:
        return None
    return inputs[ops[0].facts.ref.input if ops else 0].path


def _materials(ops: Sequence[PlanOp]) -> tuple[Material, ...]:
    """What the inputs of the ops that can run come from."""
    found: dict[Material, None] = {}
    for op in ops:
        for tensor in op.tensors() if op.why_not is None else []:
            found["capture" if tensor.fidelity == "recorded" else "types"] = None
    return tuple(found)

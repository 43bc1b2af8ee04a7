"""From an open analysis to the plan of an op replay: the ops of the window with their inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from analyzer.errors import ReplaySetupError
from analyzer.pipeline import Analysis
from analyzer.replay.executors.flashinfer_calls import is_of_flashinfer
from analyzer.replay.plan import Material, Plan, PlanOp, PlanTensor
from analyzer.replay.planning.aoti import Launches, saved_files
from analyzer.replay.planning.captures import (
    Captures,
    SavedTensor,
    folder_beside,
    pid_at,
    pids_of_blocks,
)
from analyzer.replay.planning.flashinfer import Dumped
from analyzer.replay.planning.max_log import plan_max_op
from analyzer.replay.planning.max_types import read_trees
from analyzer.replay.planning.torch_log import is_torch_op, plan_torch_op
from analyzer.replay.planning.triton_log import is_recorded_kernel, plan_kernel
from analyzer.replay.planning.window import LoggedOp, ops_of_window

_NAME_ONLY = (
    "the log has its name only: which op launched it, with which operands, is told by an op log "
    "(`trace-analyze record -- COMMAND`)"
)
_NO_WINDOW = "no op is suspected: there is no window"


def build_plan(analysis: Analysis, materials: Sequence[Path] = ()) -> Plan:
    """Plan the execution of the suspicious window.

    Args:
        analysis: Open: its inputs are read again.
        materials: Files and folders that the user gives: saved inputs of ``record``, tensor dumps of
            AOTInductor or FlashInfer, IR files. The folder that ``record`` made beside a log is found by
            itself.

    Returns:
        All outer ops of the window in launch order, each with a call or the reason why it has none. Without
        a window (an exact report) the suspects. Dumped calls of FlashInfer stand behind them.

    Raises:
        ReplaySetupError: A material does not exist.
        InputError: A ``.mojo`` file is none of ``ir-output-dir``.
    """
    missing = next((path for path in materials if not path.exists()), None)
    if missing is not None:
        raise ReplaySetupError(f"{missing}: no such file or folder")
    ops = ops_of_window(analysis)
    planner = _Planner(analysis, materials)
    planned = [_placed(op, planner.plan(op, number)) for number, op in enumerate(ops)]
    dumped = Dumped(materials)
    planned += dumped.plan(len(planned))
    return Plan(
        log=_log(analysis, ops),
        material=_materials(planned, dumped=len(ops)),
        ops=tuple(planned),
        notes=tuple(_notes(ops, dumped)),
    )


def with_user_ops(plan: Plan, names: Collection[str]) -> Plan:
    """The plan with the ops of these names executed by the user's functions, where their operands are known.

    Args:
        plan: As built, or as edited.
        names: Of the log, or calls.
    """
    return msgspec.structs.replace(
        plan,
        ops=tuple(
            msgspec.structs.replace(op, executor="user", stand_in=None, parts=(), why_not=None)
            if (op.name in names or op.call in names) and op.arguments
            else op
            for op in plan.ops
        ),
    )


def without_user_ops(plan: Plan) -> Plan:
    """The plan where no file of functions was given: what only such a file could execute is told so."""
    return msgspec.structs.replace(plan, ops=tuple(map(_without_function, plan.ops)))


def _without_function(op: PlanOp) -> PlanOp:
    if op.executor != "user" or op.why_not is not None or is_of_flashinfer(op.call):
        return op
    why = f"without a file of functions nothing executes {op.call} (`--ops FILE`)"
    return msgspec.structs.replace(op, why_not=why)


class _Planner:
    """Gives each op to the reader of its kind."""

    def __init__(self, analysis: Analysis, materials: Sequence[Path]) -> None:
        self._analysis = analysis
        self._captures = Captures(_capture_folders(analysis, materials))
        self._trees = read_trees(analysis, materials)
        self._files = saved_files(analysis, materials)
        self._blocks: dict[int, list[tuple[int, int]]] = {}
        self._launches: dict[tuple[int, str], Launches] = {}

    def plan(self, op: LoggedOp, number: int) -> PlanOp:
        """One op of the window."""
        if op.printed:
            return self._launches_of(op).plan(op, number)
        if is_torch_op(op):
            return plan_torch_op(op, number, self._saved(op))
        if is_recorded_kernel(op):
            return plan_kernel(op, number)
        if op.facts.ref.line is None and self._trees.of(op.name) is None:
            return PlanOp(number=number, name=op.name, executor="user", call=op.name, why_not=_NAME_ONLY)
        return plan_max_op(self._without_types_of_names(op), number, self._trees)

    def _launches_of(self, op: LoggedOp) -> Launches:
        key = op.facts.ref.input, op.facts.ref.process
        if key not in self._launches:
            self._launches[key] = Launches(self._analysis, *key, self._files)
        return self._launches[key]

    def _without_types_of_names(self, op: LoggedOp) -> LoggedOp:
        """Types that ``--ir`` gives to a name are those of all its parts, no list of operands."""
        if op.name not in self._analysis.known.types:
            return op
        facts = msgspec.structs.replace(op.facts, tensors=op.facts.detail.tensors)
        return msgspec.structs.replace(op, facts=facts)

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
        device=ref.device or next((one.device for one in plan.tensors()), None),
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


def _materials(ops: Sequence[PlanOp], dumped: int) -> tuple[Material, ...]:
    """What the inputs of the ops that can run come from; ops from ``dumped`` on are FlashInfer's."""
    found: dict[Material, None] = {}
    for op in ops:
        for tensor in op.tensors() if op.why_not is None else []:
            found[_material(tensor, from_flashinfer=op.number >= dumped)] = None
    return tuple(found)


def _material(tensor: PlanTensor, *, from_flashinfer: bool) -> Material:
    if from_flashinfer:
        return "flashinfer_dump"
    if tensor.file is not None:
        return "aoti_dump" if tensor.file.endswith(".pt") else "capture"
    printed = tensor.values is not None or tensor.mean is not None
    return "printed_values" if printed else "types"


def _notes(ops: Sequence[LoggedOp], dumped: Dumped) -> list[str]:
    notes = []
    if not ops and not dumped:
        notes.append(_NO_WINDOW)
    if ops and dumped:
        notes.append("the dumped calls stand behind the ops of the log: neither tells their common order")
    if dumped.left_out:
        notes.append(f"{dumped.left_out} earlier dumped calls were left out")
    return notes

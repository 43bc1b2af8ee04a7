"""A real recording: one step of a small program and the begin of the next, to id 142: an index out of range.

Made by ``trace-analyze record --for torch`` with PyTorch 2.13 on CPU: embedding, layer norm, comparison,
where, cat, attention, softmax, top-k, sort, gather, scatter_add, index_put with a gap, index, bfloat16 bmm
with strides, convolution, loss, one_hot, index_select, masks, dropout, embedding_bag, pad, take. Paths
are rewritten, inputs written anew by the tests.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

from analyzer.pipeline import Options, open_analysis
from analyzer.record.ops.inputs import SavedInput, file_name, pack_inputs
from analyzer.replay.plan import Plan, PlanArgument, PlanOp, PlanTensor
from analyzer.replay.planning import build_plan

LOG = Path(__file__).parent / "recorded.log"
PID = 4819
FIRST = 94  # of the ids in it
BAD = 142  # id of the embedding that is given an index out of range


def plan_of(log: Path, *materials: Path, window: tuple[int, int] | None = None) -> Plan:
    """The plan for a log."""
    with open_analysis([str(log)], Options(window=window)) as analysis:
        return build_plan(analysis, materials)


def whole_plan(log: Path, *materials: Path) -> Plan:
    """The plan for all ops of a log."""
    return plan_of(log, *materials, window=(1, 1_000_000))


def op_of(plan: Plan, ident: int) -> PlanOp:
    """The op of an id of the log."""
    return next(op for op in plan.ops if op.log_id == ident)


def named(plan: Plan, name: str) -> PlanOp:
    """The last op of a name."""
    return next(op for op in reversed(plan.ops) if op.name == name)


def argument(op: PlanOp, name: str) -> PlanArgument:
    """An argument by its name."""
    return next(one for one in op.arguments if one.name == name)


def tensor(op: PlanOp, name: str) -> PlanTensor:
    """A tensor argument by its name."""
    found = argument(op, name).tensor
    assert found is not None
    return found


def copy_with_inputs(folder: Path, indices: list[int], *, op: str = "aten::embedding") -> Path:
    """The log with a folder of saved inputs beside it; ``indices`` empty = above the limit of ``record``."""
    log = folder / "serve.log"
    shutil.copy(LOG, log)
    inputs = folder / "serve.log.inputs"
    inputs.mkdir()
    saved = SavedInput(
        name="indices",
        shape=(4, 7),
        dtype="int64",
        device="cpu",
        low=65,
        high=1000,
        data=struct.pack(f"<{len(indices)}q", *indices),
    )
    (inputs / file_name(BAD, f"{PID}-")).write_bytes(pack_inputs(op, [saved]))
    return log

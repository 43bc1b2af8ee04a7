"""Plans made by hand, and the analysis that they would come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from analyzer.replay.op_replay import replay_ops
from analyzer.replay.ops.options import OpReplayOptions
from analyzer.replay.plan import Plan, PlanArgument, PlanOp, PlanTensor
from analyzer.replay.report import ReplayReport
from analyzer.replay_result import Fidelity
from analyzer.schema import Fault, FaultKind, Result
from tests.replay import results

FAKE_WORKER = Path(__file__).parent / "fake_worker.py"


def fault(text: str, kind: FaultKind = "unknown", *, code: int | None = None) -> Fault:
    return Fault(
        line=5, last_line=5, input=0, process="", text=text, witness="c10", kind=kind, role="root",
        trust="late", code=code, sticky=code is not None,
    )  # fmt: skip


def failing_log(
    text: str = "IndexError: index out of range in self", kind: FaultKind = "unknown", code: int | None = None
) -> Result:
    return msgspec.structs.replace(results.log(), faults=[fault(text, kind, code=code)])


def tensor(
    shape: tuple[int, ...] = (4,),
    dtype: str = "int64",
    *,
    fidelity: Fidelity = "recorded",
    device: str = "cpu",
    **facts: Any,
) -> PlanTensor:
    return PlanTensor(shape=shape, dtype=dtype, device=device, fidelity=fidelity, **facts)


def words(*calls: str, fidelity: Fidelity = "recorded", **facts: Any) -> Plan:
    """Ops for the fake worker, each with an index input of that fidelity."""
    index = PlanArgument(name="index", tensor=tensor(fidelity=fidelity))
    return Plan(
        log="serve.log",
        ops=tuple(
            PlanOp(
                number=number, name=f"op{number}", executor="torch", call=call, arguments=(index,), **facts
            )
            for number, call in enumerate(calls)
        ),
    )


def replay_words(plan: Plan, folder: Path, log: Result | None = None, **settings: Any) -> ReplayReport:
    """Replay with the fake worker."""
    options = {"deadline_s": 20.0, "grace_s": 0.2, "worker": (str(FAKE_WORKER),), **settings}
    return replay_ops(log or failing_log(), plan, OpReplayOptions(folder=folder, **options))

"""Replays made by hand: of a program, and of the ops of a window by themselves."""

from __future__ import annotations

import msgspec

from analyzer import schema as s
from analyzer.replay_result import BlamedOp, Comparison, Replay, ReplayAttempt, ReplayedOp
from tests.report import results

OUTPUTS = "/srv/state/replay"
SWITCHES = {"PYTHONUNBUFFERED": "1", "CUDA_LAUNCH_BLOCKING": "1"}
ERROR = "IndexError: index out of range in self"
EMBEDDING = BlamedOp(
    name="aten::embedding",
    kind="op",
    exact=True,
    number=11,
    step=7,
    source=s.SourceFrame(
        file="/srv/app/serve.py", line=18, function="forward", text="x = self.embedding(ids)"
    ),
    notes=("input 1: values from 0 to 100",),
)
COPY = BlamedOp(
    name="aten::copy_",
    kind="op",
    exact=False,
    step=6,
    source=s.SourceFrame(file="/srv/app/serve.py", line=29, function="main", text="ids[3] = 100"),
)


def attempt(number: int, **changes: object) -> ReplayAttempt:
    """A failing blocking attempt, with ``changes`` to its fields."""
    fields: dict[str, object] = {
        "number": number,
        "rung": "blocking",
        "outcome": "failed",
        "command": ["python", "serve.py", "--bad step"],
        "switches": SWITCHES,
        "duration_s": 1.25,
        "output": f"{OUTPUTS}/{number}.log",
        "exit_code": 1,
        "kind": "unknown",
        "error": ERROR,
        "op": EMBEDDING,
        "ops": 36,
    }
    return ReplayAttempt(**(fields | changes))  # type: ignore[arg-type]  # one dict, many field types


def of_program() -> s.Result:
    """An exact error of the host that a replay of the program confirmed; no op record in the log."""
    control = attempt(3, rung="control", outcome="passed", exit_code=0, error=None, op=None, kind=None)
    done = Replay(
        verdict="confirmed",
        statement="aten::embedding in step 7 failed in 2 of 2 attempts",
        rules_out=("a late report of an earlier launch",),
        attempts=(attempt(1), attempt(2, sound_before=True, producer=COPY), control),
        op=EMBEDDING,
        producer=COPY,
        control="the same step with valid indices passed",
        comparison=Comparison(
            log_kind="unknown",
            replay_kind="unknown",
            same_kind=True,
            log_op=None,
            replay_op="aten::embedding",
            same_op=None,
        ),
        skipped=("core dump: no GPU",),
        folder=OUTPUTS,
    )
    at = s.ReportedAt(python=s.SourceFrame(file="/srv/app/serve.py", line=18, function="forward"))
    root = results.fault(
        kind="unknown", text=ERROR, trust="exact", code=None, name=None, vendor=None, sticky=False,
        device=None, reported_at=at, trust_reason="host code raised it",
    )  # fmt: skip
    told = s.Conclusion(
        confidence="confirmed",
        cause_class="software",
        suspect=None,
        statement="A replay shows it: aten::embedding in step 7 failed in 2 of 2 attempts.",
    )
    return results.result(faults=[root], conclusion=told, replay=done)


def of_ops() -> s.Result:
    """The window's ops by themselves: nothing reproduced, one op stood in for, one not run."""
    ops = (
        ReplayedOp(
            number=1, name="mo.add", call="torch.add(x, y)", fidelity="recorded", outcome="sound",
            device_ns=12_300, on_device=True, line=6236,
        ),
        ReplayedOp(
            number=2, name="custom__paged_lookup", call="none", fidelity="made", outcome="not_run",
            line=6548, why_not="no executor for custom ops",
        ),
        ReplayedOp(
            number=3, name="mo.softmax", call="torch.softmax(x)", fidelity="statistics", outcome="failed",
            stand_in="an ATen op for a fused kernel",
        ),
    )  # fmt: skip
    done = Replay(
        verdict="not_reproduced",
        statement="no op of the window failed",
        kind="ops",
        attempts=(
            attempt(1, fidelity="made", outcome="passed", error=None, op=None, exit_code=0, kind=None),
        ),
        ops=ops,
        fidelity="made",
        shrunk_to=(1, 3),
        repro="repro.py",
        interrupted=True,
    )
    return msgspec.structs.replace(results.late(), replay=done)

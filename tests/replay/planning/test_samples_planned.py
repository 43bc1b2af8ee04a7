"""Every sample as a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.replay.plan import PlanOp, read_plan, write_plan
from analyzer.scoreboard import Case
from tests.samples import cases, opened


def check(op: PlanOp) -> None:
    """An op has a call, or the reason why it has none; no input claims more than the log tells."""
    assert op.call
    if op.why_not is not None:
        assert len(op.why_not) > 20
    for tensor in op.tensors():
        assert tensor.fidelity != "recorded" or (tensor.file or tensor.values is not None)
        assert tensor.fidelity != "statistics" or (tensor.low is not None and tensor.high is not None)
        assert tensor.from_op is None or tensor.from_op < op.number
        assert tensor.values is None or len(tensor.values) <= 1_000_000


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_op_of_a_sample_has_a_call_or_a_reason(case: Case, tmp_path: Path) -> None:
    plan = opened(case.name).plan
    assert plan.ops or plan.notes
    for number, op in enumerate(plan.ops):
        assert op.number == number
        check(op)
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan

"""Every sample as a plan."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest

from analyzer.pipeline import open_analysis
from analyzer.replay.plan import Plan, PlanOp, read_plan, write_plan
from analyzer.replay.planning import build_plan
from analyzer.scoreboard import Case
from tests.samples import cases


def plan_of_case(case: Case) -> Plan:
    with (
        chdir(case.folder),
        open_analysis(list(case.inputs), case.analysis_options(Path())) as analysis,
    ):
        return build_plan(analysis)


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
    plan = plan_of_case(case)
    assert plan.ops or plan.notes
    for number, op in enumerate(plan.ops):
        assert op.number == number
        check(op)
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan

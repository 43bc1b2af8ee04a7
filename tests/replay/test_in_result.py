"""What a replay changes in the result of a log."""

from __future__ import annotations

import msgspec
import pytest

from analyzer.replay.report import Comparison, ReplayAttempt, ReplayReport
from analyzer.schema import Fault, FaultKind, Result
from analyzer.verdict.confidence import with_replay
from tests.replay import results


def fault(kind: FaultKind, text: str) -> Fault:
    return Fault(
        line=5,
        last_line=5,
        input=0,
        process="",
        text=text,
        witness="c10",
        kind=kind,
        role="root",
        trust="late",
    )


def failing_log(kind: FaultKind = "illegal_address", text: str = "CUDA error: x") -> Result:
    return msgspec.structs.replace(results.log(results.suspect("aten::index", 7)), faults=[fault(kind, text)])


def report(*, kind: FaultKind, error: str, log_kind: FaultKind) -> ReplayReport:
    attempt = ReplayAttempt(
        number=2, rung="blocking", outcome="failed", command=["x"], switches={}, duration_s=1.0, output="x",
        error=error,
    )  # fmt: skip
    same = Comparison(
        log_kind=log_kind,
        replay_kind=kind,
        same_kind=kind == log_kind,
        log_op=None,
        replay_op=None,
        same_op=None,
    )
    return ReplayReport(
        verdict="confirmed", statement="failed twice", rules_out=(), attempts=(attempt,), comparison=same,
        op=results.blamed(),
    )  # fmt: skip


def test_the_same_failure_at_the_op_confirms_it() -> None:
    made = report(kind="illegal_address", error="CUDA error: x", log_kind="illegal_address")
    result = with_replay(failing_log(), made)
    assert result.conclusion.confidence == "confirmed"
    assert result.conclusion.statement.startswith("A replay shows it: failed twice")


@pytest.mark.parametrize(
    ("log", "kind", "error"),
    [
        (failing_log(), "unknown", "IndexError: index out of range"),
        (failing_log("unknown", "IndexError: 3"), "unknown", "RuntimeError: shapes"),
        (results.log(), "unknown", "RuntimeError: shapes"),
    ],
)
def test_another_failure_confirms_nothing(log: Result, kind: FaultKind, error: str) -> None:
    """Any program that fails would confirm any log."""
    made = report(kind=kind, error=error, log_kind=log.faults[0].kind if log.faults else "unknown")
    result = with_replay(log, made)
    assert result.conclusion == log.conclusion
    assert result.replay is not None
    assert result.replay.verdict == "confirmed_other_op"
    assert error in result.replay.statement

"""What became of each op of the plan: its outcome and its time on the device."""

from __future__ import annotations

import statistics
from typing import Literal

from analyzer.replay.ops.state import Search
from analyzer.replay.plan import PlanOp
from analyzer.replay_result import ReplayedOp

Outcome = Literal["sound", "failed", "hang", "out_of_memory", "not_run"]
_FAILED: dict[str, Outcome] = {"failed": "failed", "hang": "hang", "out_of_memory": "out_of_memory"}


def replayed_ops(search: Search) -> tuple[ReplayedOp, ...]:
    """One entry an op of the plan, in launch order."""
    times: dict[int, list[tuple[int, bool]]] = {}
    sound: set[int] = set()
    failed: dict[int, Outcome] = {}
    attempts = search.attempts
    for trial, finding in zip(attempts.trials, attempts.findings, strict=True):
        for number, duration_ns, on_device in finding.sound:
            if number in trial.valid:
                continue  # with other values than those of the window
            sound.add(number)
            if duration_ns is not None:
                times.setdefault(number, []).append((duration_ns, on_device))
        is_failure = trial.rung != "control" and search.is_evidence(finding)
        if is_failure and finding.number is not None:
            failed[finding.number] = _FAILED[finding.outcome]
    return tuple(_entry(op, search, times.get(op.number, []), sound, failed) for op in search.plan.ops)


def _entry(
    op: PlanOp,
    search: Search,
    times: list[tuple[int, bool]],
    sound: set[int],
    failed: dict[int, Outcome],
) -> ReplayedOp:
    """A device's clock wins over the host's: the two are never mixed."""
    on_device = any(by_device for _, by_device in times)
    alike = [duration for duration, by_device in times if by_device == on_device]
    outcome: Outcome = failed.get(op.number) or ("sound" if op.number in sound else "not_run")
    why_not = op.why_not or search.left_out.get(op.number)
    if outcome == "not_run" and why_not is None:
        why_not = "an earlier op of the window failed" if failed else "no attempt came to it"
    return ReplayedOp(
        number=op.number,
        name=op.name,
        call=op.call,
        fidelity=op.fidelity(),
        outcome=outcome,
        device_ns=round(statistics.median(alike)) if alike else None,
        on_device=on_device,
        log_id=op.log_id,
        line=op.line,
        step=op.step,
        stand_in=op.stand_in,
        why_not=why_not if outcome == "not_run" else None,
    )

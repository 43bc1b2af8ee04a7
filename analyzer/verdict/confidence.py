"""What raises or lowers the confidence that a case has by itself (design.md rule 7)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.incident.driver_log import is_joined_by_time
from analyzer.incident.driver_messages import is_of_driver
from analyzer.model import FaultRecord
from analyzer.replay_result import Replay
from analyzer.schema import Conclusion, Result


def with_caps(conclusion: Conclusion, records: Sequence[FaultRecord], root: FaultRecord) -> Conclusion:
    """Nothing is proven where only the time joins the hardware message with the error of the program."""
    if any(map(is_of_driver, records)) and is_joined_by_time(records, root):
        return msgspec.structs.replace(conclusion, confidence="likely")
    return conclusion


def with_replay(result: Result, report: Replay, *, own: bool = True) -> Result:
    """Put a replay into a result: only a confirmed op of the same failure raises the confidence.

    Args:
        result: The analysis.
        report: What the replay found.
        own: What ran is what the log tells; a plan that was given may say anything, and confirms itself only.
    """
    conclusion = result.conclusion
    of_program = report.kind == "program"  # single ops are judged with what is known of each
    if of_program and report.verdict == "confirmed" and (other := _other_failure(result, report)):
        told = f"{report.statement}; {other}"
        report = msgspec.structs.replace(report, verdict="confirmed_other_op", statement=told)
    is_proven = conclusion.suspect is not None and conclusion.confidence == "proven"
    if own and report.verdict == "confirmed" and not is_proven:
        statement = f"A replay shows it: {report.statement}. {conclusion.statement}"
        conclusion = msgspec.structs.replace(conclusion, confidence="confirmed", statement=statement)
    return msgspec.structs.replace(result, conclusion=conclusion, replay=report)


def _other_failure(result: Result, report: Replay) -> str | None:
    """Why the replay failed in another way than the log, or null. Any failing program confirms nothing."""
    root = next((fault for fault in result.faults if fault.role == "root"), None)
    failed = next((one for one in reversed(report.attempts) if one.outcome == "failed"), None)
    error = (failed.error if failed else None) or "an error of another kind"
    if root is None:
        return f"but the log has no fault: this failure ({error}) is another one"
    same_kind = report.comparison.same_kind if report.comparison else None
    same_name = root.text.split(":")[0] == error.split(":")[0]
    if same_kind is False or (root.kind == "unknown" and not same_name):
        return f"but that is another failure than the log's: {error}"
    return None

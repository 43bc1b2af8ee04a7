"""The conclusion of a log without a root fault: what was survived, and what was asked for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.incident.roles import RoleDecision
from analyzer.incident.stopped import STOPPED
from analyzer.model import FaultRecord
from analyzer.schema import Conclusion


def with_survived(
    conclusion: Conclusion,
    records: Sequence[FaultRecord],
    before: Sequence[RoleDecision],
    now: Sequence[RoleDecision],
) -> Conclusion:
    """The conclusion of a log without a root fault: it mentions the errors that were survived."""
    notes = [
        f"line {record.line}: {role.reason} ({record.text.splitlines()[0]})"
        for record, old, role in zip(records, before, now, strict=True)
        if old.role == "root" and role.role != "root"
    ]
    if not notes:
        return conclusion
    return msgspec.structs.replace(
        conclusion,
        statement="No fault found that ended the program: it went on working after the errors in the log.",
        notes=[*notes, *conclusion.notes],
    )


def with_stopped(conclusion: Conclusion, roles: Sequence[RoleDecision]) -> Conclusion:
    """The conclusion of a log without a root fault: the program was stopped."""
    if not any(role.reason.startswith(STOPPED) for role in roles):
        return conclusion
    statement = f"No fault found that ended the program: {STOPPED}."
    return msgspec.structs.replace(conclusion, statement=statement)

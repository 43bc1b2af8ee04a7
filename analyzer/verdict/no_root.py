"""The conclusion of a log without a root fault: what was survived, and what was asked for."""

from __future__ import annotations

import msgspec

from analyzer.incident.asked_to_stop import STOPPED, asked_to_stop
from analyzer.incident.incident import Incident
from analyzer.incident.survived import survived
from analyzer.schema import Conclusion


def with_survived(conclusion: Conclusion, incident: Incident) -> Conclusion:
    """The conclusion of a log without a root fault: it mentions the errors that were survived."""
    taken = incident.taken_from_root(survived, asked_to_stop)
    if not taken:
        return conclusion
    notes = [
        f"line {record.line}: {incident.roles[index].reason} ({record.text.splitlines()[0]})"
        for index in taken
        for record in (incident.records[index],)
    ]
    return msgspec.structs.replace(
        conclusion,
        statement="No fault found that ended the program: it went on working after the errors in the log.",
        notes=[*notes, *conclusion.notes],
    )


def with_stopped(conclusion: Conclusion, incident: Incident) -> Conclusion:
    """The conclusion of a log without a root fault: the program was stopped."""
    if not incident.decided_by(asked_to_stop):
        return conclusion
    statement = f"No fault found that ended the program: {STOPPED}."
    return msgspec.structs.replace(conclusion, statement=statement)

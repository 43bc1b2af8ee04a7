"""Reports that tell of no failure by themselves: a tool reports what a program handles, or warns.

compute-sanitizer reports each call that returns an error (formats.md 3.18); programs try what the device may
not be able to do, and go on.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from analyzer.incident.incident import Change, Incident, RoleDecision, SetRecord, SetRole


def confirmed_reports(incident: Incident) -> Iterator[Change]:
    """A report is a fault like others where the program itself failed with that code.

    Out of memory is seldom told again in the same words: there any failure of the program will do.
    """
    own = [record for record in incident.records if not record.advice]
    codes = {(record.source, record.code) for record in own if record.code is not None}
    failed = {record.source for record in own}
    for index, record in enumerate(incident.records):
        same = (record.source, record.code) in codes
        if record.advice and (same or (record.kind == "out_of_memory" and record.source in failed)):
            told = msgspec.structs.replace(record, advice=False)
            yield SetRecord(index=index, record=told, why="the program failed of what the tool reports")


def advice(incident: Incident) -> Iterator[Change]:
    """What a tool reports and nothing confirms is advice, and no fault."""
    reason = "a report of a tool: nothing shows that the program failed of it"
    for index in incident.compared:
        if incident.records[index].advice:
            yield SetRole(index=index, role=RoleDecision(role="advice", reason=reason))

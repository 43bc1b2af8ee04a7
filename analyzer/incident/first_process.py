"""Which of several processes failed first (design.md rule 1, formats.md 5.4, 7.8)."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.incident.asserts import is_assert_text, is_report_of_assert
from analyzer.incident.explanation import explanation_ranks
from analyzer.incident.first import first_of_roots, seconds_between, who
from analyzer.incident.incident import Change, Incident, RoleDecision, SetRole, place_of
from analyzer.model import FaultRecord
from analyzer.traits import is_victim


def first_process(incident: Incident) -> Iterator[Change]:
    """The root of the process that failed first stays; others can have failed by themselves."""
    compared = incident.compared
    records = [incident.records[index] for index in compared]
    roots = [at for at, index in enumerate(compared) if incident.roles[index].role == "root"]
    if len(roots) < 2:
        return
    first = first_of_roots(records, roots, explanation_ranks(records, roots))
    for at in roots:
        if at != first:
            yield SetRole(index=compared[at], role=_other_root(records[at], records[first]))


def _other_root(record: FaultRecord, first: FaultRecord) -> RoleDecision:
    """The first fault of another process: it can have failed by itself, but somebody failed before."""
    if record.relayed:
        return RoleDecision(role="bystander", reason=f"hands on the failure of {who(first)}")
    if is_victim(record):
        return RoleDecision(role="bystander", reason=f"victim of the failure of {who(first)}")
    if record.teardown:
        return RoleDecision(role="teardown", reason="printed while objects were destroyed")
    passed = seconds_between(first, record)
    if is_assert_text(first) and not first.process and is_report_of_assert(record):
        reason = f"it met an assert: whether that of line {first.line}, which has no tag, is not told"
    elif passed is not None and passed > 0:
        reason = f"{who(first)} failed {passed:.3f} s earlier (line {first.line})"
    elif record.source != first.source and passed is None:
        reason = f"{who(first)} is taken as the first (line {first.line}): the inputs have no common clock"
    else:
        reason = f"{who(first)} failed first (line {first.line})"
    return RoleDecision(role="bystander", reason=reason, lines=(place_of(first),))

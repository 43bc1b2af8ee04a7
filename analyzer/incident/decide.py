"""Runs the rules in order: from fault records to roles and trust."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.incident.incident import (
    UNDECIDED,
    UNTRUSTED,
    Add,
    Change,
    Decision,
    Drop,
    Incident,
    RoleDecision,
    Rule,
    Say,
    SetRecord,
    SetRole,
    SetTrust,
)
from analyzer.incident.rules import RULES
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, TrustDecision


def decide(known: Knowledge) -> Incident:
    """Decide roles and trust of all faults."""
    return run(undecided(known), RULES)


def undecided(known: Knowledge) -> Incident:
    """The faults before any rule."""
    count = len(known.records)
    return Incident(
        known=known,
        roles=(UNDECIDED,) * count,
        trusts=(UNTRUSTED,) * count,
        numbers=tuple(range(count)),
    )


def run(incident: Incident, rules: Sequence[Rule]) -> Incident:
    """What the rules make of an incident, each with all that the ones before it decided."""
    for one in rules:
        changes = list(one.changes(incident))
        if changes:
            incident = _with_changes(incident, one.name, changes)
    return incident


class _State(msgspec.Struct):
    """One fault while the changes of a rule are made. ``record`` null = it was dropped."""

    number: int
    record: FaultRecord | None
    role: RoleDecision = UNDECIDED
    trust: TrustDecision = UNTRUSTED


def _with_changes(incident: Incident, name: str, changes: Sequence[Change]) -> Incident:
    """The incident with the changes of one rule, each noted."""
    states = [
        _State(number=number, record=record, role=role, trust=trust)
        for number, record, role, trust in zip(
            incident.numbers, incident.records, incident.roles, incident.trusts, strict=True
        )
    ]
    decisions, notes = list(incident.decisions), list(incident.notes)
    for change in changes:
        if isinstance(change, Say):
            notes.append(change.text)
            continue
        if isinstance(change, Add):
            states.append(_State(number=_next_number(decisions, states), record=None))
        state = states[-1 if isinstance(change, Add) else change.index]
        decisions.extend(_apply(state, name, change))
    left = [(one.record, one) for one in states if one.record is not None]
    if any(isinstance(change, Add) for change in changes):
        left.sort(key=lambda pair: (pair[0].source, pair[0].line))
    return Incident(
        known=msgspec.structs.replace(incident.known, records=[record for record, _ in left]),
        roles=tuple(one.role for _, one in left),
        trusts=tuple(one.trust for _, one in left),
        numbers=tuple(one.number for _, one in left),
        decisions=tuple(decisions),
        notes=tuple(notes),
    )


def _next_number(decisions: Sequence[Decision], states: Sequence[_State]) -> int:
    """A number that no fault has or had."""
    return 1 + max([one.fault for one in decisions] + [one.number for one in states], default=-1)


def _apply(state: _State, name: str, change: SetRole | SetTrust | SetRecord | Drop | Add) -> list[Decision]:
    """Change one fault; what was changed."""
    made: list[tuple[str, str, str]] = []
    old = state.record
    match change:
        case SetRole(role=role):
            before = state.role.role if state.role.rule else None
            state.role = msgspec.structs.replace(role, rule=name, before=before)
            why, lines = role.reason, role.lines
            made = [("role", before or "", role.role)]
        case SetTrust(trust=trust):
            made = [("trust", state.trust.trust if state.trust.rule else "", trust.trust)]
            state.trust = msgspec.structs.replace(trust, rule=name)
            why, lines = trust.reason, trust.lines
        case Drop(why=why, lines=lines):
            made = [("fault", old.kind if old else "", "")]
            state.record = None
        case Add(record=record, why=why):
            made, lines = [("fault", "", record.kind)], ()
            old = state.record = record
        case SetRecord(record=record, why=why, lines=lines):
            made = _differences(old, record)
            state.record = record
    place = old or state.record
    return [
        Decision(
            rule=name,
            fault=state.number,
            source=place.source if place else 0,
            line=place.line if place else 0,
            what=what,
            before=was,
            after=now,
            why=why,
            lines=lines,
        )
        for what, was, now in made
    ]


def _differences(old: FaultRecord | None, new: FaultRecord) -> list[tuple[str, str, str]]:
    """Fields in which two forms of a fault differ, with both values."""
    fields = [(name, getattr(old, name), getattr(new, name)) for name in new.__struct_fields__]
    return [(name, _shown(was), _shown(now)) for name, was, now in fields if was != now]


def _shown(value: object) -> str:
    """A field as text; a kernel by its name."""
    return "" if value is None else str(getattr(value, "kernel", value))

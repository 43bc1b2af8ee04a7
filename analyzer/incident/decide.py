"""From fault records to roles and trust: which fault is the root, and where it may be believed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.incident.cut_names import without_cut_names
from analyzer.incident.fold import fold_repeats
from analyzer.incident.incidents import roles_of_incidents
from analyzer.incident.processes import name_writers
from analyzer.incident.roles import RoleDecision
from analyzer.incident.several import with_doubt
from analyzer.incident.stopped import demote_stopped
from analyzer.incident.survived import demote_survived
from analyzer.incident.times_above import with_times_above
from analyzer.incident.tool_reports import with_backed
from analyzer.incident.trust import decide_trust
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, TrustDecision
from analyzer.values.faults import with_printed_faults


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of all inputs with what was decided about each.

    ``known``: all that is known, its records as the rules left them. ``assigned``: roles before what was
    survived or asked for was taken back; ``roles``, ``trusts``: one a record. ``root``: index of the root
    fault, null = none. ``notes``: what is said of earlier crashes in the log.
    """

    known: Knowledge
    assigned: Sequence[RoleDecision]
    roles: Sequence[RoleDecision]
    trusts: Sequence[TrustDecision]
    root: int | None
    notes: Sequence[str]

    @property
    def fault(self) -> FaultRecord | None:
        """The root fault; null = none."""
        return None if self.root is None else self.known.records[self.root]


def decide(known: Knowledge) -> Incident:
    """Decide roles and trust of all faults."""
    known = msgspec.structs.replace(known, records=name_writers(with_backed(fold_repeats(known.records))))
    known = with_printed_faults(msgspec.structs.replace(known, records=without_cut_names(known)))
    known = msgspec.structs.replace(known, records=with_times_above(known))
    assigned, earlier = roles_of_incidents(known)
    roles = demote_stopped(known, demote_survived(known, assigned))
    trusts = [
        decide_trust(record, after_sticky=role.after_sticky, modes=known.modes)
        for record, role in zip(known.records, roles, strict=True)
    ]
    return Incident(
        known=known,
        assigned=assigned,
        roles=roles,
        trusts=with_doubt(known.records, trusts),
        root=next((index for index, role in enumerate(roles) if role.role == "root"), None),
        notes=earlier,
    )

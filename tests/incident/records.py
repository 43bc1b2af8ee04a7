"""Fault records for the tests of roles: what matters is said, the rest is the same for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import polars as pl

from analyzer.incident.decide import run, undecided
from analyzer.incident.incident import Incident, RoleDecision, rule
from analyzer.incident.rules import ROLES
from analyzer.incident.trust import TRUST_OF_REPORTS
from analyzer.ingest.load import OPS_SCHEMA
from analyzer.knowledge import Knowledge
from analyzer.model import STEP_MARKS, FaultRecord, TrustDecision
from analyzer.schema import Modes
from analyzer.timeline.build import build_timeline

SECOND_NS = 10**9


def fault(line: int, kind: str = "illegal_address", **more: Any) -> FaultRecord:
    """A report of the host at ``line`` of the first input."""
    known: dict[str, Any] = {
        "source": 0,
        "process": "",
        "line": line,
        "last_line": line,
        "block_first": line,
        "text": f"{kind} text",
        "witness": "c10",
        "site": "sync",
    }
    return FaultRecord(**{**known, "kind": kind, **more})


def at(seconds: float, clock: str = "epoch") -> dict[str, Any]:
    """A time of the log."""
    return {"time_ns": int(seconds * SECOND_NS), "clock": clock}


def incident_of(records: Sequence[FaultRecord], modes: Modes | None = None) -> Incident:
    """The faults of a log without ops, before any rule."""
    timeline = build_timeline(pl.DataFrame(schema=OPS_SCHEMA), pl.DataFrame(schema=STEP_MARKS))
    known = Knowledge(
        timeline=timeline,
        records=list(records),
        modes=modes or Modes(),
        advice=[],
        readers={},
        types={},
        packages=(),
    )
    return undecided(known)


def after(function: Callable[[Incident], Any], records: Sequence[FaultRecord]) -> list[FaultRecord]:
    """The faults as one rule leaves them."""
    return list(run(incident_of(records), [rule(function)]).records)


def assign_roles(records: Sequence[FaultRecord]) -> list[RoleDecision]:
    """The roles that the faults have beside each other."""
    return list(run(incident_of(records), ROLES).roles)


def decide_trust(
    record: FaultRecord, *, after_sticky: bool = False, modes: Modes | None = None
) -> TrustDecision:
    """Whether the place of one report may be believed."""
    incident = incident_of([record], modes)
    role = RoleDecision(role="cascade", reason="given", after_sticky=after_sticky, rule="given")
    return run(msgspec.structs.replace(incident, roles=(role,)), TRUST_OF_REPORTS).trusts[0]

"""The faults of all inputs with what the rules decided about each, and every decision with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, TrustDecision
from analyzer.schema import Role, Value

Place = tuple[int, int]  # source and line


class RoleDecision(Value):
    """The role of one fault and why.

    ``after_sticky``: an earlier sticky fault of its process exists. ``lines``: places that the reason names.
    ``aside``: it is known to have no part in the failure, so nothing is compared with it any more.
    ``rule``: who decided; empty = nobody yet. ``before``: the role that this one took the place of.
    """

    role: Role
    reason: str
    after_sticky: bool = False
    lines: tuple[Place, ...] = ()
    aside: bool = False
    rule: str = ""
    before: Role | None = None


class Decision(Value):
    """One change that a rule made. ``what``: ``role``, ``trust``, or the field of the fault that was set.

    ``fault``: its number (``Incident.numbers``), which stays; ``source``, ``line``: its place. ``before``,
    ``after``: empty = it had no such value. ``lines``: places that the reason names.
    """

    rule: str
    fault: int
    source: int
    line: int
    what: str
    before: str
    after: str
    why: str
    lines: tuple[Place, ...] = ()


class SetRole(Value):
    """A role for the fault at ``index``."""

    index: int
    role: RoleDecision


class SetTrust(Value):
    """Whether the place of the fault at ``index`` may be believed."""

    index: int
    trust: TrustDecision


class SetRecord(Value):
    """The fault at ``index`` in another form: its process, kernel or count was set."""

    index: int
    record: FaultRecord
    why: str
    lines: tuple[Place, ...] = ()


class Drop(Value):
    """The fault at ``index`` is none of its own."""

    index: int
    why: str
    lines: tuple[Place, ...] = ()


class Add(Value):
    """A fault that no text tells as one; it is put in by line."""

    record: FaultRecord
    why: str


class Say(Value):
    """A sentence for the conclusion."""

    text: str


Change = SetRole | SetTrust | SetRecord | Drop | Add | Say
UNDECIDED = RoleDecision(role="bystander", reason="")
UNTRUSTED = TrustDecision(trust="late", reason="")


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """What is known and what was decided.

    ``known``: all that is known, its records as the rules left them. ``roles``, ``trusts``: one a record.
    ``numbers``: of the records, by which ``decisions`` (every change, in order) name them. ``notes``: what is
    said of earlier crashes in the log.
    """

    known: Knowledge
    roles: tuple[RoleDecision, ...]
    trusts: tuple[TrustDecision, ...]
    numbers: tuple[int, ...]
    decisions: tuple[Decision, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> Sequence[FaultRecord]:
        """The faults, in the order of inputs and lines."""
        return self.known.records

    @property
    def root(self) -> int | None:
        """Index of the root fault; null = none."""
        return next((index for index, role in enumerate(self.roles) if role.role == "root"), None)

    @property
    def fault(self) -> FaultRecord | None:
        """The root fault; null = none."""
        return None if self.root is None else self.records[self.root]

    @property
    def compared(self) -> list[int]:
        """Indices of the faults that can have a part in the failure."""
        return [index for index, role in enumerate(self.roles) if not role.aside]

    def decided_by(self, *rules: Changes) -> list[int]:
        """Indices of the faults whose role one of these rules set last."""
        names = {name_of(one) for one in rules}
        return [index for index, role in enumerate(self.roles) if role.rule in names]

    def taken_from_root(self, *rules: Changes) -> list[int]:
        """Indices of the faults that were the root until one of these rules took it back."""
        return [index for index in self.decided_by(*rules) if self.roles[index].before == "root"]


Changes = Callable[[Incident], Iterable[Change]]


class Rule(Value):
    """A named rule: what it changes about an incident, and nothing else."""

    name: str
    changes: Changes


def rule(changes: Changes) -> Rule:
    """The rule with the name of its function."""
    return Rule(name=name_of(changes), changes=changes)


def name_of(function: object) -> str:
    """The name of a function: what a rule is called."""
    return str(getattr(function, "__name__", ""))


def place_of(record: FaultRecord) -> Place:
    """Source and line of a fault."""
    return record.source, record.line

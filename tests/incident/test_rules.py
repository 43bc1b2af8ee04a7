"""The rules as a whole: one order, names, and a note of everything that they change."""

from __future__ import annotations

import ast
from pathlib import Path

import analyzer.incident
from analyzer.incident.decide import run
from analyzer.incident.first_process import first_process
from analyzer.incident.fold import fold_repeats
from analyzer.incident.incident import Add, Change, Incident, SetTrust, rule
from analyzer.incident.rules import RECORDS, ROLES, RULES, TRUST
from analyzer.incident.several_kernels import several_kernels
from analyzer.incident.within_process import within_process
from analyzer.model import KernelState, TrustDecision
from analyzer.tables.kinds import BY_NAME
from analyzer.witness import witnesses
from tests.incident.records import at, fault, incident_of


def test_every_rule_has_a_name_of_its_own() -> None:
    names = [one.name for one in RULES]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() for name in names)


def test_no_rule_knows_a_witness_by_name() -> None:
    """What is true of a witness is said where it is declared."""
    names = {one.name for one in witnesses()} - set(BY_NAME)  # a kind can be called like a witness
    folder = Path(next(iter(analyzer.incident.__path__)))
    literals = {
        (path.name, node.value)
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert not literals


def test_every_fault_gets_a_role_and_a_trust() -> None:
    records = [fault(1), fault(2, process="a"), fault(3, "ecc_error", site="driver_log", name="Xid 48")]
    decided = run(incident_of(records), (*ROLES, *TRUST[:-1]))
    assert all(role.rule and role.reason for role in decided.roles)
    assert all(trust.rule and trust.reason for trust in decided.trusts)


def test_a_role_that_is_taken_back_is_noted_with_both_values() -> None:
    records = [fault(1, process="a", **at(2)), fault(2, process="b", **at(1))]
    decided = run(incident_of(records), [rule(within_process), rule(first_process)])
    assert [one.role for one in decided.roles] == ["bystander", "root"]
    last = decided.decisions[-1]
    assert (last.rule, last.line, last.what) == ("first_process", 1, "role")
    assert (last.before, last.after, last.lines) == ("root", "bystander", ((0, 2),))
    assert decided.taken_from_root(first_process) == [0]
    assert decided.decided_by(within_process) == [1]


def test_a_fault_keeps_its_number_when_others_go_or_come() -> None:
    """Decisions name faults by numbers, since folding moves their places."""

    def put_first(incident: Incident) -> list[Change]:
        return [Add(record=fault(1, "nan"), why="a value shows it")] if incident.records else []

    records = [fault(5), fault(6), fault(7, "nan")]
    left = run(incident_of(records), [rule(fold_repeats), rule(put_first)])
    assert [one.line for one in left.records] == [1, 5, 7]
    assert left.numbers == (3, 0, 2)
    noted = [(one.fault, one.what, one.before, one.after) for one in left.decisions]
    assert (0, "count", "1", "2") in noted
    assert (1, "fault", "illegal_address", "") in noted
    assert (3, "fault", "", "nan") in noted


def test_a_rule_that_changes_nothing_leaves_no_note() -> None:
    before = incident_of([fault(1)])
    assert run(before, RECORDS[:3]) is before


def test_of_several_kernels_in_one_report_none_is_the_place() -> None:
    first, second = (
        fault(1, site="device", witness="tool", state=KernelState(kernel=name)) for name in ("a", "b")
    )
    alone = fault(9, site="device", witness="tool", state=KernelState(kernel="a"))
    trusted = run(incident_of([first, second, alone]), [rule(_believed), rule(several_kernels)])
    assert [one.trust for one in trusted.trusts] == ["late", "late", "exact"]


def _believed(incident: Incident) -> list[Change]:
    exact = TrustDecision(trust="exact", reason="given")
    return [SetTrust(index=index, trust=exact) for index in range(len(incident.records))]

"""The cause class of records made here."""

from __future__ import annotations

import pytest

from analyzer.verdict.cause import cause_class, cause_of_kind, ran_out_of_memory
from tests.faults_made import fault

FULL = fault(line=5, kind="out_of_memory", name=None, code=None)


def test_the_kind_tells_where_nothing_else_does() -> None:
    root = fault()
    assert cause_class([root], root) == cause_of_kind(root) == "software"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_that_somebody_sends_has_no_cause(name: str) -> None:
    root = fault(kind="host_abort", name=name, code=None)
    assert cause_class([root], root) is None


def test_a_signal_of_the_program_itself_has_the_cause_of_its_kind() -> None:
    root = fault(kind="host_abort", name="SIGABRT", code=None)
    assert cause_class([root], root) == "software"


def test_a_killed_process_whose_memory_ran_out_failed_for_memory() -> None:
    root = fault(line=9, kind="host_abort", name="SIGKILL", code=None)
    assert cause_class([FULL, root], root) == "memory"
    assert ran_out_of_memory([FULL, root], root) == [FULL]


def test_memory_that_ran_out_beside_another_end_is_not_its_cause() -> None:
    """Somebody who stops a server by hand does so for his own reasons."""
    root = fault(line=9, kind="host_abort", name="SIGTERM", code=None)
    assert cause_class([FULL, root], root) is None

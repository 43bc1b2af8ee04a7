"""Rules of roles beyond the first sticky fault: deaths, relayed failures, ranks, clocks (formats.md 5)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from analyzer.incident.root_of_process import RECOVERED_S
from analyzer.model import FaultRecord, KernelState
from tests.incident.records import assign_roles, at, fault


def roles(*records: FaultRecord) -> list[str]:
    return [decision.role for decision in assign_roles(records)]


def test_no_faults_no_roles() -> None:
    assert assign_roles([]) == []


def test_the_first_sticky_fault_counts() -> None:
    assert roles(fault(1), fault(2), fault(3, "launch_failure")) == ["root", "cascade", "cascade"]


def test_only_what_follows_a_sticky_fault_is_poisoned() -> None:
    decisions = assign_roles([fault(1, "out_of_memory"), fault(2), fault(3)])
    assert [decision.role for decision in decisions] == ["bystander", "root", "cascade"]
    assert [decision.after_sticky for decision in decisions] == [False, False, True]


@pytest.mark.parametrize("kind", ["nan", "input_check"])
def test_a_check_before_the_fault_beats_it(kind: str) -> None:
    assert roles(fault(1, kind), fault(2)) == ["root", "cascade"]
    assert roles(fault(1), fault(2, kind)) == ["root", "cascade"]


def test_the_device_beats_the_report_before_it() -> None:
    """Sanitizer, core dump or ROCm's kernel name, then the assert text, then the host (formats.md 5.2)."""
    dump = fault(3, site="device", state=KernelState(kernel="k"))
    text = fault(2, "device_assert", site="device")
    assert roles(fault(1), text, dump) == ["cascade", "cascade", "root"]
    assert roles(fault(1), text) == ["cascade", "root"]


def test_a_library_status_explains_less_than_a_device_fault() -> None:
    status = fault(1, "library_status", name="CUBLAS_STATUS_NOT_INITIALIZED")
    assert roles(status, fault(2)) == ["bystander", "root"]
    assert roles(fault(1), fault(2, "library_status")) == ["root", "cascade"]


def test_who_only_looks_at_the_device_comes_last() -> None:
    assert roles(fault(1, met=True), fault(2)) == ["cascade", "root"]
    assert roles(fault(1, met=True)) == ["root"]


def test_destructors_are_teardown() -> None:
    assert roles(fault(1, "library_status"), fault(2, teardown=True)) == ["root", "teardown"]
    assert roles(fault(2, teardown=True)) == ["root"]


def test_terminate_after_an_error_is_teardown() -> None:
    end = fault(2, "host_abort", text="terminate called after throwing an instance of 'std::bad_alloc'")
    assert roles(fault(1, "kernel_raised"), end) == ["root", "teardown"]
    assert roles(end) == ["root"]


@pytest.mark.parametrize("kind", ["host_abort", "host_segfault"])
def test_a_death_after_a_fault_is_cascade_and_alone_the_root(kind: str) -> None:
    assert roles(fault(1), fault(2, kind, site="host")) == ["root", "cascade"]
    assert roles(fault(1, "out_of_memory"), fault(2, kind, site="host")) == ["root", "cascade"]
    assert roles(fault(2, kind, site="host")) == ["root"]


def test_who_lived_on_did_not_die_of_the_error() -> None:
    error, death = fault(1, "out_of_memory", **at(0)), fault(2, "host_segfault", **at(RECOVERED_S + 1))
    assert roles(error, death) == ["bystander", "root"]
    assert roles(error, fault(2, "host_segfault", **at(RECOVERED_S - 1))) == ["root", "cascade"]


def test_an_exception_explains_the_death_after_it() -> None:
    raised = fault(1, "unknown", witness="python_traceback")
    assert roles(raised, fault(2, "host_abort")) == ["root", "cascade"]
    assert roles(raised, fault(2)) == ["bystander", "root"]


def test_relayed_failures_never_win() -> None:
    told = fault(1, "peer_lost", relayed=True)
    assert roles(told, fault(2, "unknown", witness="python_traceback")) == ["cascade", "root"]
    assert roles(told) == ["root"]


def test_the_rank_that_a_launcher_saw_first_is_the_root_among_ranks() -> None:
    peer = fault(1, "host_abort", relayed=True, rank=1)
    first = fault(2, "host_segfault", relayed=True, rank=3, first_observed=True)
    assert roles(peer, first) == ["bystander", "root"]


def test_api_servers_are_bystanders() -> None:
    server = fault(1, "peer_lost", process="APIServer pid=7", relayed=True)
    assert roles(server, fault(2, process="EngineCore pid=9")) == ["bystander", "root"]


def test_watchdogs_and_victims_are_bystanders() -> None:
    """Also where their line comes first."""
    hang = fault(1, "hang_timeout", process="rank0")
    lost = fault(2, "peer_lost", process="rank1")
    assert roles(hang, lost, fault(3, process="rank2")) == ["bystander", "bystander", "root"]


def test_across_processes_the_earliest_clock_wins() -> None:
    late, early = fault(1, process="a", **at(20)), fault(2, process="b", **at(10))
    decisions = assign_roles([late, early])
    assert [decision.role for decision in decisions] == ["bystander", "root"]
    assert "10.000 s earlier" in decisions[0].reason


def test_clocks_of_two_kinds_are_not_compared() -> None:
    """A time of day is a small number, whatever the day."""
    dated, undated = fault(1, process="a", **at(1.7e9)), fault(2, process="b", **at(100, "no_date"))
    assert roles(dated, undated) == ["root", "bystander"]


def test_midnight_and_new_year_are_no_jump_back() -> None:
    before, after = at(86_390, "no_date"), at(5, "no_date")
    assert roles(fault(1, process="a", **after), fault(2, process="b", **before)) == ["bystander", "root"]
    year_s = 365 * 86_400
    before, after = at(year_s - 5, "no_year"), at(5, "no_year")
    assert roles(fault(1, process="a", **after), fault(2, process="b", **before)) == ["bystander", "root"]


def test_a_launcher_decides_where_no_clock_does() -> None:
    seen = fault(9, "host_abort", process="", rank=2, relayed=True, first_observed=True)
    a, b = fault(1, process="rank0", rank=0), fault(2, process="rank2", rank=2)
    assert roles(a, b, seen)[:2] == ["bystander", "root"]


def test_inputs_without_a_common_clock_are_told() -> None:
    decisions = assign_roles([fault(1), fault(1, source=1, process="b")])
    assert "no common clock" in decisions[1].reason


def test_a_second_device_exception_says_whether_it_is_the_same() -> None:
    first = fault(1, site="device", state=KernelState(kernel="k"))
    again = fault(2, site="device", state=KernelState(kernel="k"))
    other = fault(3, "launch_failure", site="device", state=KernelState(kernel="j"))
    decisions = assign_roles([first, again, other])
    assert "another witness" in decisions[1].reason
    assert "further device exception" in decisions[2].reason


@pytest.mark.parametrize("process", ["", "p{n}", "rank{n}"])
def test_ten_thousand_faults_are_cheap(process: str) -> None:
    """No loop over pairs: of one process, of ten thousand, and of untagged text beside them."""
    kinds = ("illegal_address", "host_abort", "unknown")
    more: list[dict[str, Any]] = [
        {
            "process": process.format(n=n),
            "rank": n if "{" in process else None,
            "site": "device" if n % 2 else "sync",
        }
        for n in range(10_000)
    ]
    records = [fault(n + 1, kinds[n % 3], **one) for n, one in enumerate(more)]
    records += [fault(n, "illegal_address", site="device") for n in range(10_001, 12_000)]
    begin = time.process_time()
    decisions = assign_roles(records)
    assert time.process_time() - begin < 2.0
    assert [one.role for one in decisions].count("root") == 1


def test_a_death_of_which_only_destructors_tell_the_cause_is_the_faults() -> None:
    """A thread that polls events met the fault, nobody reported it, and the process aborted."""
    polled = fault(2, "launch_failure", code=719, teardown=True, witness="xla")
    death = fault(4, "host_abort", site="host", witness="process_death")
    later = fault(9, "launch_failure", code=719, teardown=True, witness="xla")
    assert roles(polled, death) == ["root", "cascade"]
    assert roles(death, later) == ["root", "teardown"]


def assert_text(line: int, **more: Any) -> FaultRecord:
    return fault(line, "device_assert", site="device", code=710, vendor="nvidia", **more)


def test_the_first_assert_counts_though_a_later_one_names_a_kernel() -> None:
    named = assert_text(2, process="a", state=KernelState(kernel="k"))
    assert roles(assert_text(1, process="a"), named) == ["root", "cascade"]
    assert roles(assert_text(1), assert_text(2, state=KernelState(kernel="k"))) == ["root", "bystander"]


def test_a_tool_that_saw_the_assert_still_beats_its_text() -> None:
    dump = fault(3, "device_assert", site="device", witness="coredump", state=KernelState(kernel="k"))
    assert roles(assert_text(1), dump) == ["cascade", "root"]


def test_an_assert_after_a_bad_address_is_of_another_process() -> None:
    """The context was lost at line 4, and an assert is reported as 710."""
    decisions = assign_roles([fault(4), assert_text(9)])
    assert [one.role for one in decisions] == ["root", "bystander"]
    assert "710" in decisions[1].reason
    assert roles(fault(4, met=True), assert_text(9)) == ["root", "bystander"]


def test_a_bad_address_after_an_assert_is_another_fault() -> None:
    assert roles(assert_text(1), fault(5)) == ["root", "bystander"]
    assert roles(assert_text(1), fault(5, "device_assert", code=710)) == ["root", "cascade"]


def test_an_assert_without_a_tag_beats_the_ranks_that_report_one() -> None:
    """Also where a launcher saw one of them fail first: whose it is, is not told."""
    reports = [fault(3 + n, "device_assert", code=710, process=f"rank{n}", rank=n) for n in range(2)]
    seen = fault(9, "host_abort", rank=1, relayed=True, first_observed=True)
    decisions = assign_roles([assert_text(1), *reports, seen])
    assert [one.role for one in decisions][:3] == ["root", "bystander", "bystander"]
    assert "is not told" in decisions[1].reason


def test_the_rank_that_a_launcher_saw_die_first_beats_the_peers_that_lost_it() -> None:
    lost = fault(1, kind="peer_lost", site="host", process="rank0", rank=0)
    died = fault(9, kind="host_segfault", site="host", rank=1, relayed=True, first_observed=True)
    assert [role.role for role in assign_roles([lost, died])] == ["bystander", "root"]


def test_a_rank_that_its_watchdog_ended_explains_no_time_out() -> None:
    waits = fault(1, kind="hang_timeout", site="host", process="rank0", rank=0)
    died = fault(9, kind="host_abort", name="SIGABRT", site="host", rank=1, relayed=True, first_observed=True)
    assert [role.role for role in assign_roles([waits, died])] == ["root", "bystander"]


def test_an_error_that_a_rank_printed_explains_more_than_a_death_seen_first() -> None:
    said = fault(1, kind="illegal_address", code=700, site="launch", process="rank0", rank=0)
    died = fault(9, kind="host_segfault", site="host", rank=1, relayed=True, first_observed=True)
    assert [role.role for role in assign_roles([said, died])] == ["root", "bystander"]

"""Which faults belong to one process (formats.md 3.2, 3.6, 6)."""

from __future__ import annotations

from analyzer.incident.processes import group_by_process, name_processes
from analyzer.model import FaultRecord
from tests.incident.records import after, fault


def processes(*records: FaultRecord) -> list[list[int]]:
    return group_by_process(records)


def test_each_process_is_a_group() -> None:
    assert processes(fault(1, process="a"), fault(2, process="b"), fault(3, process="a")) == [[0, 2], [1]]


def test_equal_tags_of_two_inputs_are_two_processes() -> None:
    assert processes(fault(1, process="a"), fault(1, process="a", source=1)) == [[0], [1]]


def test_a_rank_is_the_process_whose_tag_has_it() -> None:
    """c10 writes past vLLM's tag (formats.md 3.6)."""
    tagged = fault(1, process="Worker_TP0 pid=9", rank=0)
    other = fault(2, process="Worker_TP1 pid=10", rank=1)
    assert processes(tagged, other, fault(3, process="rank0", rank=0)) == [[0, 2], [1]]


def test_a_rank_of_two_processes_stays_alone() -> None:
    """Two data-parallel engines have a rank 0 each."""
    a, b = fault(1, process="a", rank=0), fault(2, process="b", rank=0)
    assert processes(a, b, fault(3, process="rank0", rank=0)) == [[0], [1], [2]]


def test_containers_keep_their_ranks_apart() -> None:
    a = fault(1, process="x-1/Worker_TP0 pid=9", rank=0)
    assert processes(a, fault(2, process="y-1/rank0", rank=0)) == [[0], [1]]
    assert processes(a, fault(2, process="x-1/rank0", rank=0)) == [[0, 1]]


def test_an_assert_belongs_to_who_reports_it() -> None:
    """The driver writes it past the tag, before the report (formats.md 3.2)."""
    other = fault(1, process="a", kind="out_of_memory")
    text = fault(2, "device_assert", site="device")
    assert processes(other, text, fault(3, "device_assert", process="b", code=710)) == [[0], [1, 2]]


def test_a_death_without_a_tag_follows_the_fault_before_it() -> None:
    death = fault(3, "host_abort")
    assert processes(fault(1, process="a"), fault(2, "unknown", process="b"), death) == [[0, 2], [1]]
    by_pid = fault(3, "host_abort", pid=8)
    assert processes(fault(1, process="a pid=7"), fault(2, process="b pid=8"), by_pid) == [[0], [1, 2]]


def test_a_launcher_names_the_rank() -> None:
    told = fault(3, "host_abort", rank=1, relayed=True)
    assert processes(fault(1, process="rank0", rank=0), fault(2, process="rank1", rank=1), told) == [
        [0],
        [1, 2],
    ]
    assert processes(fault(1, process="rank0", rank=0), told) == [[0], [1]]


def test_files_of_tools_describe_the_process_that_died() -> None:
    dump = fault(1, site="device", source=1)
    assert processes(fault(1, process="a"), fault(2, process="b"), dump) == [[0, 2], [1]]
    assert processes(dump) == [[0]]


def test_untagged_faults_get_the_name_of_their_process() -> None:
    text = fault(1, "device_assert", site="device")
    report = fault(2, "device_assert", process="Worker_TP5 pid=7", rank=5, code=710)
    named = after(name_processes, [text, report])
    assert [(one.process, one.rank) for one in named] == [("Worker_TP5 pid=7", 5)] * 2


def test_a_fault_in_another_input_keeps_its_name() -> None:
    dump = fault(1, site="device", source=1)
    assert after(name_processes, [fault(1, process="a"), dump])[1] == dump


def assert_text(line: int, **more: object) -> FaultRecord:
    return fault(line, "device_assert", site="device", code=710, vendor="nvidia", **more)


def test_an_assert_that_several_processes_report_is_nobodys() -> None:
    reports = [fault(line, "device_assert", process=name, code=710) for line, name in ((3, "b"), (4, "a"))]
    assert processes(assert_text(1), assert_text(2), *reports) == [[0, 1], [2], [3]]


def test_an_assert_is_not_of_a_process_that_met_a_bad_address() -> None:
    """It is reported as 710, never as 700."""
    assert processes(assert_text(1), fault(2, process="a", code=700)) == [[0], [1]]
    assert processes(assert_text(1), fault(2, "library_status", process="a", name="X_EXECUTION_FAILED")) == [
        [0, 1]
    ]


def test_who_only_hands_an_assert_on_does_not_report_it() -> None:
    own = fault(2, "device_assert", process="worker", code=710)
    told = fault(3, "device_assert", process="server", code=710, relayed=True)
    assert processes(assert_text(1), own, told) == [[0, 1], [2]]


def test_a_trap_belongs_to_who_met_a_launch_failure() -> None:
    text = fault(1, "device_assert", site="device", code=719, vendor="nvidia")
    other = fault(2, process="a", code=700)
    assert processes(text, other, fault(3, "launch_failure", process="b", code=719)) == [[0, 2], [1]]
    assert processes(text, other) == [[0, 1]]

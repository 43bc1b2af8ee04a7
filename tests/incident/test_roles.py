"""Which fault is the root, and what the others are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from analyzer.incident.incident import RoleDecision
from analyzer.model import FaultRecord, KernelState
from analyzer.traits import is_sticky
from tests.faults_made import fault
from tests.incident.records import assign_roles

COPY = fault(line=100)
OOM = fault(line=50, kind="out_of_memory", site="host", code=2, name="cudaErrorMemoryAllocation")
NAN = fault(line=60, kind="nan", site="host", code=None, name=None, kernel="__custom__nan_check_raise_1")
DUMP = fault(
    line=104,
    site="device",
    witness="coredump",
    code=None,
    state=KernelState(kernel="mojo_pkg_5af0_a989"),
)


def roles(*records: FaultRecord) -> list[str]:
    return [decision.role for decision in assign_roles(records)]


def decided(records: Sequence[FaultRecord], record: FaultRecord) -> RoleDecision:
    return assign_roles(records)[records.index(record)]


def test_no_fault_has_no_root() -> None:
    assert roles() == []


def test_first_sticky_fault_is_the_root_and_later_ones_are_cascade() -> None:
    """After it every call of the process fails, whatever it names."""
    later = fault(line=140, site="launch", kernel="__softmax")
    assert roles(COPY, later) == ["root", "cascade"]
    told = decided([COPY, later], later)
    assert told.after_sticky
    assert "line 100" in told.reason


def test_error_before_the_sticky_one_left_the_process_working() -> None:
    """A caught out-of-memory error does not explain an illegal address fifty lines later."""
    assert roles(OOM, COPY) == ["bystander", "root"]


def test_error_that_nothing_sticky_follows_is_the_root() -> None:
    assert roles(OOM) == ["root"]
    assert roles(OOM, fault(line=70, kind="kernel_raised", site="host", code=None)) == ["root", "cascade"]


def test_check_that_fired_before_the_fault_beats_it() -> None:
    """NaN found in sound memory comes first; what the device did later follows."""
    assert roles(NAN, COPY) == ["root", "cascade"]


def test_check_behind_the_fault_is_cascade() -> None:
    """Values read from a lost context are no finding."""
    late = fault(line=120, kind="nan", site="host", code=None)
    assert roles(COPY, late) == ["root", "cascade"]


def test_device_witness_beats_the_late_report_before_it() -> None:
    """The core dump names the kernel; the host met its fault first in the file."""
    assert roles(COPY, DUMP) == ["cascade", "root"]


def test_second_device_witness_tells_of_the_same_fault() -> None:
    again = fault(line=4, source=1, site="device", witness="cuda-gdb", code=None, state=DUMP.state)
    assert roles(COPY, DUMP, again) == ["cascade", "root", "cascade"]
    assert decided([COPY, DUMP, again], again).reason == "another witness of the same device fault"


def test_cuda_gdb_text_beside_the_log_is_the_root_of_its_late_report() -> None:
    """A second input without any tag describes the process that died."""
    beside = fault(line=4, source=1, site="device", witness="cuda-gdb", code=None, state=DUMP.state)
    assert roles(COPY, beside) == ["cascade", "root"]


class TestSeveralProcesses:
    """Exactly one root: the process that failed first."""

    ONE = fault(line=100, process="rank1", time_ns=2_000, clock="epoch")
    OTHER = fault(line=200, process="rank0", time_ns=1_000, clock="epoch")

    def test_earliest_by_clock_is_the_root(self) -> None:
        """Buffered output makes the order in the file worthless where there are times."""
        assert roles(self.ONE, self.OTHER) == ["bystander", "root"]

    def test_without_clocks_the_first_in_the_file_is_the_root(self) -> None:
        one, other = (fault(line=line, process=name) for line, name in ((100, "rank1"), (200, "rank0")))
        assert roles(one, other) == ["root", "bystander"]
        assert decided([one, other], other).reason == "rank1 failed first (line 100)"

    @pytest.mark.parametrize("kind", ["peer_lost", "hang_timeout"])
    def test_victim_of_a_dead_peer_is_no_root_though_it_speaks_first(self, kind: str) -> None:
        """The survivors notice before the log of the dead one is flushed."""
        victim = fault(line=10, process="rank0", kind=kind, site="host", code=None)
        dead = fault(line=100, process="rank1")
        assert roles(victim, dead) == ["bystander", "root"]
        assert "victim of the failure of rank1" in decided([victim, dead], victim).reason

    def test_cascade_stays_inside_its_process(self) -> None:
        later = fault(line=150, process="rank1", site="launch")
        other = fault(line=200, process="rank0")
        assert roles(fault(line=100, process="rank1"), later, other) == ["root", "cascade", "bystander"]


@pytest.mark.parametrize(
    ("code", "kind", "sticky"),
    [
        (700, "illegal_address", True),
        (719, "launch_failure", True),
        (710, "device_assert", True),
        (2, "out_of_memory", False),
        (1, "invalid_argument", False),
        (9, "invalid_configuration", False),
        (None, "illegal_address", True),
        (None, "nan", False),
        (None, "kernel_raised", False),
    ],
)
def test_sticky_is_a_fault_that_loses_the_context(code: int | None, kind: str, sticky: bool) -> None:
    """By its code where there is one, else by its kind."""
    assert is_sticky(fault(code=code, kind=kind)) is sticky

"""What the conclusion says beside its statement."""

from __future__ import annotations

from tests import samples


def notes(case: str) -> str:
    return "\n".join(samples.analysis(case).conclusion.notes)


def test_ranks_stand_side_by_side_and_the_last_one_is_named() -> None:
    told = notes("process_group_nccl/one_rank_missing")
    assert "rank 0: hung in ALLREDUCE 17602, last enqueued 17603, last completed 17601" in told
    assert "rank 2 enqueued least (up to 17599): look there first" in told


def test_a_rank_that_says_nothing_may_be_the_one() -> None:
    assert "may be the one that did not come" in notes("process_group_nccl/no_date")


def test_hardware_in_the_kernel_log_is_the_cause() -> None:
    told = notes("xid/hardware_beside_error")
    assert "Xid 48, read as hardware" in told
    assert "Xid 154" in told


def test_a_kernel_log_without_hardware_speaks_for_software() -> None:
    told = notes("xid/dmesg_software")
    assert "(Xid 43, Xid 31, Xid 13) speaks for software" in told
    assert "9 processes had faults" in told


def test_a_node_of_rocm_is_no_gpu_number() -> None:
    assert "it is not GPU 8" in notes("rocm/trace_without_serialisation")


def test_who_reads_unwritten_memory_did_not_leave_it_unwritten() -> None:
    """The kernel that initcheck names is the messenger: the writer is missing, or wrote less."""
    assert "what should have written this memory did not" in notes("compute-sanitizer/initcheck")

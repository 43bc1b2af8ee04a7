"""What the conclusion says beside its statement."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from tests import samples

WAIT = (
    "[rank{rank}]:[E219 12:14:43.35164785{rank} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
)


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


def waiting(tmp_path: Path, *waits: tuple[str, int]) -> str:
    lines = [
        WAIT.format(rank=rank, operation=operation, sequence=sequence)
        for rank, (operation, sequence) in enumerate(waits)
    ]
    path = tmp_path / "ranks.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "\n".join(analyze([str(path)]).conclusion.notes)


@pytest.mark.parametrize("other", [("BROADCAST", 53), ("ALLREDUCE", 52)])
def test_the_rank_in_another_collective_than_the_rest_is_named(
    tmp_path: Path, other: tuple[str, int]
) -> None:
    told = waiting(tmp_path, ("ALLREDUCE", 53), ("ALLREDUCE", 53), other, ("ALLREDUCE", 53))
    assert f"rank 2 waits in {other[0]} {other[1]}, 3 others in ALLREDUCE 53: look there first" in told


def test_of_two_ranks_that_differ_none_is_named_alone(tmp_path: Path) -> None:
    told = waiting(tmp_path, ("ALLREDUCE", 53), ("BROADCAST", 53))
    assert "(rank 0 in ALLREDUCE 53; rank 1 in BROADCAST 53): their order differs" in told
    assert "look there first" not in told


def test_a_sender_and_its_receiver_do_not_differ(tmp_path: Path) -> None:
    told = waiting(tmp_path, ("SEND", 53), ("RECV", 53))
    assert "differ" not in told
    assert "may be the one that did not come" in told


def test_equal_counts_do_not_hide_that_the_operations_differ() -> None:
    told = notes("process_group_nccl/other_operation")
    assert "rank 2 waits in BROADCAST 4083, 3 others in ALLREDUCE 4083: look there first" in told

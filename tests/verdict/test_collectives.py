"""Ranks that give one collective different sizes (formats.md 3.6)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from analyzer.model import CollectiveState
from analyzer.pipeline import analyze
from analyzer.verdict.collectives import with_sizes

LINE = (
    "[rank{rank}]:[E712 05:44:1{rank}.208817340 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=53, OpType={operation}, "
    "NumelIn={elements}, NumelOut={elements}, "
    "Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n"
)


def notes(folder: Path, operation: str, *elements: int) -> str:
    """Each rank in a file of its own, as ``torchrun --log-dir`` writes them."""
    paths = []
    for rank, number in enumerate(elements):
        path = folder / f"rank{rank}.log"
        path.write_text(LINE.format(rank=rank, operation=operation, elements=number))
        paths.append(str(path))
    return "\n".join(analyze(paths).conclusion.notes)


def test_the_rank_that_gave_another_size_is_named(tmp_path: Path) -> None:
    told = notes(tmp_path, "ALLREDUCE", 8192, 8192, 8190, 8192)
    others = "3 others in ALLREDUCE(8192 elements) 53"
    assert f"rank 2 waits in ALLREDUCE(8190 elements) 53, {others}: look there first" in told


def test_equal_sizes_are_not_worth_a_word(tmp_path: Path) -> None:
    assert "elements" not in notes(tmp_path, "ALLREDUCE", 8192, 8192, 8192)


@pytest.mark.parametrize("operation", ["GATHER", "ALLTOALL_BASE", "ALLGATHER"])
def test_where_sizes_may_differ_nobody_is_named_for_it(tmp_path: Path, operation: str) -> None:
    told = notes(tmp_path, operation, 8192, 8192, 1)
    assert "elements" not in told
    assert "look there first" not in told


def test_sizes_of_other_groups_and_numbers_are_not_compared() -> None:
    first = CollectiveState(
        source=0, process="", line=1, rank=0, sequence=1, operation="ALLREDUCE", elements=4, group="tp"
    )
    states = [
        first,
        msgspec.structs.replace(first, rank=1, elements=8, group="dp"),
        msgspec.structs.replace(first, rank=1, elements=16, sequence=2),
    ]
    assert with_sizes(states) == states

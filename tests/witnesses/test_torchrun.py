"""The block of torchrun's ``ChildFailedError`` (formats.md 3.21)."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord, Reading
from analyzer.witnesses.torchrun import WITNESS
from tests.witnesses.conftest import MemoryLog, Reader

BLOCK = """\
failed (exitcode: -11) local_rank: 3 (pid: 32053) of binary: /opt/venv/bin/python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-07-10_21:46:37
  host      : gpu-node-7
  rank      : 1 (local_rank: 1)
  exitcode  : -6 (pid: 32051)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 32051
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-07-10_21:46:37
  rank      : 11 (local_rank: 3)
  exitcode  : -11 (pid: 32053)
  error_file: <N/A>
  traceback : Signal 11 (SIGSEGV) received by PID 32053
============================================================"""
LINES = BLOCK.split("\n")


def faults(reading: Reading) -> list[FaultRecord]:
    return [record for record in reading.records if isinstance(record, FaultRecord)]


def test_one_fault_a_rank(read: Reader) -> None:
    peer, root = faults(read(WITNESS, BLOCK))
    assert (peer.rank, peer.kind, peer.pid, peer.first_observed) == (1, "host_abort", 32051, False)
    assert (root.rank, root.kind, root.pid, root.first_observed) == (11, "host_segfault", 32053, True)
    assert (root.line, root.last_line) == (18, 21)
    assert peer.relayed
    assert root.relayed


def test_the_line_before_the_block_tells_the_same(read: Reader) -> None:
    reading = read(WITNESS, BLOCK)
    assert {1, 2, 10, 11, 13, 15, 18, 19, 21} <= set(reading.parsed)
    assert not reading.losses


def test_without_a_block_the_line_before_counts(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, LINES[:1]))
    assert (fault.kind, fault.pid, fault.rank) == ("host_segfault", 32053, None)


def test_the_form_without_blanks_is_read(read: Reader) -> None:
    """PyTorch 1.10."""
    old = BLOCK.replace("      :", ":").replace("  : ", ": ").replace("exitcode  :", "exitcode:")
    assert [fault.rank for fault in faults(read(WITNESS, old))] == [1, 11]


def test_an_exit_code_without_a_signal_has_no_kind(read: Reader) -> None:
    (fault,) = faults(
        read(WITNESS, ["Root Cause (first observed failure):", "  rank      : 2 (local_rank: 2)"])
    )
    assert (fault.kind, fault.first_observed) == ("unknown", True)
    log = [*LINES[14:18], "  exitcode  : 1 (pid: 5)"]
    (fault,) = faults(read(WITNESS, log))
    assert (fault.kind, fault.pid) == ("unknown", 5)


@pytest.mark.parametrize("cut", range(len(LINES)))
def test_a_block_cut_anywhere_is_read(read: Reader, cut: int) -> None:
    """A rank is told once its line is there, and ``first`` only by the title before it."""
    for part in (LINES[:cut], LINES[cut:]):
        reading = read(WITNESS, part)
        assert not reading.losses
        titled = any("Root Cause" in line for line in part)
        assert not any(fault.first_observed for fault in faults(reading)) or titled


def test_two_launchers_interleave() -> None:
    log = MemoryLog([line for line in LINES for _ in range(2)], ["a", "b"] * len(LINES))
    found = faults(WITNESS.read(log.gated(WITNESS), log))
    assert [(fault.process, fault.rank) for fault in found] == [("a", 1), ("a", 11), ("b", 1), ("b", 11)]


def test_other_uses_of_the_words_are_not_ours(read: Reader) -> None:
    reading = read(WITNESS, ["child exitcode: 3", "rank 3 (local_rank: 3) ready", "signal received by PID 7"])
    assert not reading.records
    assert reading.not_mine == [1, 2, 3]


def test_a_launcher_that_was_told_to_stop_names_the_signal(read: Reader) -> None:
    text = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 293813 got signal: 15"
    (fault,) = faults(read(WITNESS, text))
    assert (fault.kind, fault.name, fault.pid, fault.rank) == ("peer_lost", "SIGTERM", 293813, None)
    assert fault.relayed
    assert not fault.first_observed

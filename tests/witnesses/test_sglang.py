"""What SGLang says of its children (formats.md 3.12)."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord
from analyzer.witnesses.sglang import WITNESS
from tests.witnesses.conftest import Reader


@pytest.mark.parametrize(
    ("text", "kind", "pid", "relayed"),
    [
        (
            "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
            "hang_timeout",
            None,
            False,
        ),
        ("Watchdog timeout (self.watchdog_timeout=300)", "hang_timeout", None, False),
        (
            "SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
            "peer_lost",
            None,
            True,
        ),
        (
            "Received sigquit from a child process. It usually means the child failed.",
            "peer_lost",
            None,
            True,
        ),
        (
            "Subprocess scheduler_0 (pid=4410) crashed with exit code -9. Triggering SIGQUIT",
            "host_abort",
            4410,
            True,
        ),
        (
            "Subprocess scheduler_0 (pid=4410) crashed with exit code 1. Triggering SIGQUIT",
            "unknown",
            4410,
            True,
        ),
    ],
)
def test_old_and_new_words_for_a_child_that_failed(
    read: Reader, text: str, kind: str, pid: int | None, relayed: bool
) -> None:
    reading = read(WITNESS, text)
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.pid, fault.relayed) == (kind, pid, relayed)
    assert not reading.losses


def test_a_worker_of_vllm_is_none_of_its_children(read: Reader) -> None:
    """VLLM's own witness reads the same words."""
    assert not read(WITNESS, "WorkerProc hit an exception: Traceback (most recent call last):").records


DEAD = """\
Rank 0 scheduler is dead. Please check if there are relevant logs.
Exit code: -9
Traceback (most recent call last):
  File "/opt/sglang/srt/entrypoints/engine.py", line 707, in _launch_subprocesses
    data = scheduler_pipe_readers[i].recv()
EOFError"""


def test_the_end_of_its_pipe_is_how_a_killed_scheduler_is_met(read: Reader) -> None:
    """sglang#15235: the exit code is that of the scheduler, the EOFError only follows."""
    reading = read(WITNESS, DEAD)
    dead, pipe = [record for record in reading.records if isinstance(record, FaultRecord)]
    assert (dead.kind, dead.name, dead.rank, dead.line) == ("host_abort", "SIGKILL", 0, 1)
    assert (pipe.kind, pipe.line, pipe.relayed) == ("peer_lost", 6, True)
    assert reading.parsed == [1, 6]
    assert reading.continuation == [2]


def test_a_scheduler_that_ended_with_an_exit_code_said_why_itself(read: Reader) -> None:
    reading = read(WITNESS, DEAD.replace("-9", "1"))
    dead = reading.records[0]
    assert isinstance(dead, FaultRecord)
    assert (dead.kind, dead.name, dead.relayed) == ("peer_lost", None, True)


@pytest.mark.parametrize(("code", "faults"), [(-9, 0), (1, 1)])
def test_signals_of_the_newer_word_are_read_by_process_death(read: Reader, code: int, faults: int) -> None:
    text = f"RuntimeError: Rank 3 scheduler died during initialization (exit code: {code}). If exit"
    reading = read(WITNESS, text)
    assert len(reading.records) == faults
    assert not reading.losses


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: Prefill out of memory. Try to lower your batch size.",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
    ],
)
def test_a_pool_without_room_is_no_failed_allocation(read: Reader, text: str) -> None:
    (fault,) = read(WITNESS, text).records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.site, fault.relayed) == ("out_of_memory", "host", False)
    assert "no allocation failed" in fault.text


def test_a_batch_that_is_retracted_goes_on(read: Reader) -> None:
    text = "Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.41 -> 0.52"
    assert not read(WITNESS, text).records

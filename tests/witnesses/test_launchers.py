"""How a process ended, in the words of whoever started it (formats.md 3.21)."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord
from analyzer.witnesses.launchers import WITNESS
from tests.witnesses.conftest import Reader

DEEPSPEED = "[ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', 'main.py', '--local_rank=1'] "
OLLAMA = 'level=ERROR source=sched.go:456 msg="error loading llama server" error="llama runner process '


@pytest.mark.parametrize(
    ("text", "kind", "name", "rank", "pid"),
    [
        (f"{DEEPSPEED}exits with return code = -9", "host_abort", "SIGKILL", None, None),
        (f"{DEEPSPEED}exits with return code = -11", "host_segfault", "SIGSEGV", None, None),
        (f"{DEEPSPEED}exits with return code = 1", "peer_lost", None, None, None),
        (
            "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.",
            "host_abort",
            "SIGKILL",
            None,
            None,
        ),
        (f'{OLLAMA}has terminated: exit status 2"', "peer_lost", None, None, None),
        ("MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD", "peer_lost", None, 2, None),
        (
            "noticed that process rank 1 with PID 12731 on node a exited on signal 11 (Segmentation fault).",
            "host_segfault",
            "SIGSEGV",
            1,
            12731,
        ),
        ("[gpu-a:12731] Signal: Aborted (6)", "host_abort", "SIGABRT", None, 12731),
    ],
)
def test_the_parent_knows_the_signal_and_hands_the_failure_on(
    read: Reader, text: str, kind: str, name: str | None, rank: int | None, pid: int | None
) -> None:
    reading = read(WITNESS, text)
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.name, fault.rank, fault.pid) == (kind, name, rank, pid)
    assert fault.relayed
    assert not reading.losses


@pytest.mark.parametrize(
    "text",
    [
        f"{DEEPSPEED}exits with return code = 0",
        f'{OLLAMA}has terminated: signal: killed"',  # read by supervisors
        f'{OLLAMA}has terminated: exit status 0xc0000409"',  # read by process_death
    ],
)
def test_an_orderly_end_and_what_others_read_is_no_fault(read: Reader, text: str) -> None:
    reading = read(WITNESS, text)
    assert not reading.records
    assert not reading.losses

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


@pytest.mark.parametrize(
    ("text", "name", "rank", "pid"),
    [
        ("ERROR launcher: worker 0 (pid 311) exited with signal 9", "SIGKILL", None, 311),
        ("launcher: worker 0 pid 311 terminated by signal 9 (SIGKILL)", "SIGKILL", None, 311),
        ("worker 0 pid 311 was terminated by signal 9", "SIGKILL", None, 311),
        ("[launcher] worker 0 (pid 311) killed by signal 11 (SIGSEGV)", "SIGSEGV", None, 311),
        ("May 12 10:00:01 launch: process 311 died with signal 6", "SIGABRT", None, None),  # the month
        ("rank 3 (pid 4711) died from signal 6 (core dumped)", "SIGABRT", 3, 4711),
        ("worker process 311 exited on signal 11 (core dumped)", "SIGSEGV", None, None),
        ("fish: Job 1, 'python x.py' terminated by signal SIGKILL (Forced quit)", "SIGKILL", None, None),
        ('{"level":"error","msg":"worker 3 pid=7 exited with signal 9"}', "SIGKILL", None, 7),
        ("Server process exited with signal 9. You may be out of memory.", "SIGKILL", None, None),
        ("worker 2 killed by signal 9 after 30 s (out of memory?), restarting", "SIGKILL", None, None),
    ],
)
def test_scripts_and_pools_tell_the_signal_of_a_process(
    read: Reader, text: str, name: str, rank: int | None, pid: int | None
) -> None:
    reading = read(WITNESS, text)
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.name, fault.rank, fault.pid, fault.relayed) == (name, rank, pid, True)
    assert not reading.losses


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 137 means that it was killed by signal 9",
        "exit code 137 usually means the process was killed by signal 9.",
        "If worker 0 exited with signal 9, check dmesg",
        "A process killed by signal 9 leaves no core file",
        "The process was killed by signal 9, likely out of memory.",
        "worker 0 killed by signal 9 leaves no core file",
        "  --restart  restart worker processes that exited with signal 9",
        "# worker 0 exited with signal 9",
        "// worker 0 exited with signal 9",
        'logger.error("worker %d exited with signal 9")',
        "no worker was killed by signal 9",
        "Was process 311 killed by signal 9?",
        "worker 0 terminated by signal 9 as expected",
        '"content": "Process 311 was killed by signal 9."',
        "Generated text: Process 311 was killed by signal 9.",
        "- Process 311 killed by signal 9: out of memory",
        "RuntimeError: DataLoader worker (pid 4411) exited with signal 9",  # read by python_traceback
    ],
)
def test_a_sentence_about_signals_is_no_death(read: Reader, text: str) -> None:
    reading = read(WITNESS, text)
    assert (reading.records, reading.losses) == ([], [])


@pytest.mark.parametrize("signal", ["15", "2", "SIGTERM", "SIGINT", "SIGHUP"])
def test_who_was_asked_to_stop_did_not_die(read: Reader, signal: str) -> None:
    reading = read(WITNESS, f"worker 0 (pid 311) terminated by signal {signal}")
    assert (reading.records, reading.losses) == ([], [])

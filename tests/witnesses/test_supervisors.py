"""How systemd, Slurm, the kernel, a debugger and Go tell a death (formats.md 3.21)."""

from __future__ import annotations

import pytest

from analyzer.advice.host_steps import host_steps
from analyzer.model import FaultRecord, Reading
from analyzer.witnesses.supervisors import WITNESS
from tests.witnesses.conftest import Reader

KILLED = "llama.service: Main process exited, code=killed, status=9/KILL"


def faults(reading: Reading) -> list[FaultRecord]:
    assert not reading.losses
    return [record for record in reading.records if isinstance(record, FaultRecord)]


@pytest.mark.parametrize(
    ("line", "name", "pid", "rank"),
    [
        (KILLED, "SIGKILL", None, None),
        ("llama.service: Main process exited, code=dumped, status=11/SEGV", "SIGSEGV", None, None),
        ("llama.service: main process exited, code=killed, status=6/ABRT", "SIGABRT", None, None),
        ("vllm.service: Main process exited, code=exited, status=137/n/a", "SIGKILL", None, None),
        ("srun: error: gpu01: task 3: Segmentation fault", "SIGSEGV", None, 3),
        ("srun: error: gpu01: task 3: Segmentation fault (core dumped)", "SIGSEGV", None, 3),
        ("srun: error: gpu[01-02]: tasks 1-3,5: Bus error", "SIGBUS", None, None),
        ("srun: error: gpu01: task 7: Exited with exit code 134", "SIGABRT", None, 7),
        (
            "python3[4711]: segfault at 0 ip 00007f0c sp 00007ffd error 4 in libcuda.so.535[7f0c+10]",
            "SIGSEGV",
            4711,
            None,
        ),
        (
            "traps: python3[4711] general protection fault ip:7f sp:7f error:0 in a.so[7f+1]",
            "SIGSEGV",
            4711,
            None,
        ),
        ("traps: python3[4711] trap invalid opcode ip:7f sp:7f error:0 in a.so[7f+1]", "SIGILL", 4711, None),
        ('Thread 1 "python3" received signal SIGSEGV, Segmentation fault.', "SIGSEGV", None, None),
        ("Program received signal SIGABRT, Aborted.", "SIGABRT", None, None),
        ("SIGSEGV: segmentation violation", "SIGSEGV", None, None),
        ("SIGABRT: abort", "SIGABRT", None, None),
        ('msg="llama runner terminated" error="signal: killed"', "SIGKILL", None, None),
        (
            "llama runner process has terminated: signal: segmentation fault (core dumped)",
            "SIGSEGV",
            None,
            None,
        ),
    ],
)
def test_a_death_is_handed_on_with_its_signal(
    read: Reader, line: str, name: str, pid: int | None, rank: int | None
) -> None:
    (fault,) = faults(read(WITNESS, line))
    assert (fault.name, fault.pid, fault.rank, fault.relayed) == (name, pid, rank, True)


@pytest.mark.parametrize(
    "line",
    [
        "llama.service: Main process exited, code=killed, status=15/TERM",
        "llama.service: Main process exited, code=exited, status=1/FAILURE",
        "llama.service: Main process exited, code=exited, status=143/n/a",
        "llama.service: Failed with result 'exit-code'.",
        "srun: error: gpu02: task 6: Exited with exit code 1",
        "slurmstepd: error: *** STEP 440575.0 ON nid001277 CANCELLED AT 2026-12-05T07:16:01 ***",
        "received signal SIGTERM, shutting down",
    ],
)
def test_an_end_that_was_asked_for_or_says_no_signal_is_no_death(read: Reader, line: str) -> None:
    assert not faults(read(WITNESS, line))


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("llama.service: Failed with result 'oom-kill'.", "systemctl show"),
        ("llama.service: A process of this unit has been killed by the OOM killer.", "systemctl show"),
        ("Detected 1 oom_kill event in StepId=113.0. Some of the step tasks have been OOM Killed.", "sacct"),
        ("Detected 2 oom-kill event(s) in step 34950.batch cgroup. Some of your processes may", "sacct"),
        ("srun: error: gpu03: task 0: Out Of Memory", "sacct"),
        ('sending SIGKILL to process 4711 uid 1000 "python3": badness 1210, VmRSS 66900 MiB', "free -h"),
    ],
)
def test_missing_memory_is_that_of_the_host(read: Reader, line: str, command: str) -> None:
    (fault,) = faults(read(WITNESS, line))
    assert (fault.kind, fault.relayed) == ("out_of_memory", True)
    assert "memory of the host, not of the GPU" in fault.text
    assert host_steps(fault)[0].command.startswith(command)


def test_the_signal_beside_the_reason_is_the_same_death(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, [KILLED, "llama.service: Failed with result 'oom-kill'."]))
    assert (fault.kind, fault.line) == ("out_of_memory", 2)


def test_a_kill_far_from_the_reason_is_a_death_of_its_own(read: Reader) -> None:
    found = faults(read(WITNESS, [KILLED, *["ok"] * 30, "llama.service: Failed with result 'oom-kill'."]))
    assert [fault.name for fault in found] == ["SIGKILL", None]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("TIME LIMIT", "configuration"), ("PREEMPTION", "peer_lost"), ("NODE FAILURE", "peer_lost")],
)
def test_a_job_that_was_cancelled_for_a_reason(read: Reader, reason: str, kind: str) -> None:
    line = f"slurmstepd: error: *** JOB 191 ON gpu03 CANCELLED AT 2026-12-05T07:16:01 DUE TO {reason} ***"
    (fault,) = faults(read(WITNESS, line))
    assert (fault.kind, fault.relayed) == (kind, True)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("exited: vllm (terminated by SIGSEGV (core dumped); not expected)", "SIGSEGV"),
        ("WARN exited: llm:vllm_00 (terminated by SIGKILL; not expected)", "SIGKILL"),
        ("vllm (terminated by SIGABRT; not expected)", "SIGABRT"),  # the word before it went with the logger
    ],
)
def test_supervisord_did_not_expect_the_end(read: Reader, line: str, name: str) -> None:
    (fault,) = faults(read(WITNESS, line))
    assert (fault.name, fault.relayed) == (name, True)


@pytest.mark.parametrize(
    "line",
    [
        "exited: vllm (terminated by SIGKILL; expected)",
        "stopped: vllm (terminated by SIGKILL)",
        "exited: vllm (terminated by SIGTERM; not expected)",
        'supervisord says "exited: x (terminated by SIGKILL; not expected)" when a process dies',
    ],
)
def test_supervisord_expected_or_asked_for_the_end(read: Reader, line: str) -> None:
    assert not faults(read(WITNESS, line))

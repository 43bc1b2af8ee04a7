"""Why a container ended (formats.md 3.21)."""

# ruff: noqa: E501  (a log line is as long as it is)

from __future__ import annotations

import pytest

from analyzer.advice.host_steps import host_steps
from analyzer.model import FaultRecord, Reading
from analyzer.witnesses.kubernetes import WITNESS
from tests.witnesses.conftest import Reader

DESCRIBED = """\
    State:          Running
      Started:      Sun, 11 Aug 2026 19:00:04 +0200
    Last State:     Terminated
      Reason:       {reason}
      Exit Code:    {code}
      Started:      Sun, 11 Aug 2026 17:16:14 +0200
      Finished:     Sun, 11 Aug 2026 19:00:03 +0200
    Ready:          True"""
JSON = """\
    "terminated": {
        "containerID": "containerd://8c2f",
        "exitCode": 137,
        "finishedAt": "2026-07-25T08:13:08Z",
        "reason": "OOMKilled",
        "startedAt": "2026-07-25T07:53:08Z"
    }"""
INSPECTED = """\
            "OOMKilled": true,
            "Dead": false,
            "Pid": 0,
            "ExitCode": 137,
            "Error": "","""
PROBED = "Container server failed liveness probe, will be restarted"


def faults(reading: Reading) -> list[FaultRecord]:
    assert not reading.losses
    return [record for record in reading.records if isinstance(record, FaultRecord)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (DESCRIBED.format(reason="OOMKilled", code=137), 4),
        (JSON, 5),
        (INSPECTED, 1),
        ("      exitCode: 137\n      reason: OOMKilled", 2),
        ("llama-serve-7d9c6b5f4-x2x9q   0/1   OOMKilled   4 (57s ago)   2m40s", 1),
        (
            "2026-08-11T19:00:03Z container oom 8c2f0e (image=a:1, name=b)\ncontainer die 8c2f0e (exitCode=137)",
            1,
        ),
    ],
)
def test_a_kill_for_memory_is_one_death_and_of_the_host(read: Reader, text: str, line: int) -> None:
    """The exit code beside it is the same death; a full GPU kills nobody."""
    (fault,) = faults(read(WITNESS, text))
    assert (fault.kind, fault.line, fault.relayed) == ("out_of_memory", line, True)
    assert "memory of the host, not of the GPU" in fault.text
    assert [step for step in host_steps(fault) if "limit of host memory" in step.why]


def test_the_times_are_those_of_the_container_that_ended(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, DESCRIBED.format(reason="OOMKilled", code=137)))
    assert fault.text.endswith("ran from Sun, 11 Aug 2026 17:16:14 +0200 to Sun, 11 Aug 2026 19:00:03 +0200")


def test_the_end_stands_above_where_keys_are_sorted(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, JSON))
    assert fault.text.endswith("ran from 2026-07-25T07:53:08Z to 2026-07-25T08:13:08Z")


def test_a_copy_of_a_viewer_has_a_frame(read: Reader) -> None:
    """k9s (formats.md 6)."""
    rows = DESCRIBED.format(reason="OOMKilled", code=137).splitlines()
    (fault,) = faults(
        read(
            WITNESS,
            [f"\N{BOX DRAWINGS LIGHT VERTICAL} {row:<70} \N{BOX DRAWINGS LIGHT VERTICAL}" for row in rows],
        )
    )
    assert (fault.kind, fault.line) == ("out_of_memory", 4)
    assert fault.text.endswith("to Sun, 11 Aug 2026 19:00:03 +0200")


@pytest.mark.parametrize(("code", "name"), [(137, "SIGKILL"), (139, "SIGSEGV"), (134, "SIGABRT")])
def test_an_exit_code_tells_a_signal(read: Reader, code: int, name: str) -> None:
    (fault,) = faults(read(WITNESS, DESCRIBED.format(reason="Error", code=code)))
    assert (fault.name, fault.line, fault.relayed) == (name, 5, True)


@pytest.mark.parametrize(
    "text", [DESCRIBED.format(reason="Completed", code=0), '"OOMKilled": false,', '"ExitCode": 1,']
)
def test_other_ends_are_no_death(read: Reader, text: str) -> None:
    assert not faults(read(WITNESS, text))


def test_a_kill_after_a_failed_probe_is_no_sign_of_missing_memory(read: Reader) -> None:
    """Kubernetes kills what gives no answer, with the same exit code."""
    (fault,) = faults(read(WITNESS, f"{DESCRIBED.format(reason='Error', code=137)}\n{PROBED}"))
    assert (fault.kind, fault.line) == ("hang_timeout", 9)


@pytest.mark.parametrize(
    ("text", "kind", "pid"),
    [
        ("Back-off restarting failed container server in pod a_b(8c2f)", "unknown", None),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi.",
            "out_of_memory",
            None,
        ),
        ("The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi", "configuration", None),
        ("System OOM encountered, victim process: python3, pid: 4711", "out_of_memory", 4711),
    ],
)
def test_events(read: Reader, text: str, kind: str, pid: int | None) -> None:
    (fault,) = faults(read(WITNESS, f"  Warning  X  2m (x34 over 20m)  kubelet  {text}"))
    assert (fault.kind, fault.pid, fault.relayed) == (kind, pid, True)


def test_the_log_of_the_container_before_is_asked_for(read: Reader) -> None:
    (fault,) = faults(read(WITNESS, DESCRIBED.format(reason="Error", code=139)))
    assert [step.command for step in host_steps(fault)] == ["kubectl logs <pod> -c <container> --previous"]


@pytest.mark.parametrize(
    "line",
    [
        "if you see Reason: OOMKilled, raise the limit",
        "Exit Code: 137 means that it was killed",
        "pods with OOMKilled containers are restarted",
    ],
)
def test_a_sentence_about_it_is_no_death(read: Reader, line: str) -> None:
    assert not faults(read(WITNESS, line))

"""Whose process the kernel killed for memory (formats.md 3.4, 3.21)."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.incident.host_kills import is_host_kill, program_of, victim_of
from analyzer.model import FaultRecord, KilledProcess
from analyzer.parse.killed_process import killed_process
from tests.incident.records import assign_roles, at, fault

NOON = 1_782_302_400.0


def kill(name: str, pid: int = 4711, **more: Any) -> FaultRecord:
    text = f"Out of memory: Killed process {pid} ({name}) total-vm:9kB"
    known = {"text": text, "witness": "oom", "site": "host", "pid": pid, "source": 1}
    known["detail"] = killed_process(text)
    return fault(1, "out_of_memory", **{**known, **more})


def lost_engine(**more: Any) -> FaultRecord:
    """A server says that somebody is gone."""
    return fault(5, "peer_lost", **{"site": "host", "relayed": True, "process": "APIServer pid=2100", **more})


def killed_server(**more: Any) -> FaultRecord:
    return fault(5, "host_abort", **{"site": "host", "name": "SIGKILL", "relayed": True, **more})


def roles(*records: FaultRecord) -> list[str]:
    return [decision.role for decision in assign_roles(records)]


@pytest.mark.parametrize(
    ("text", "name", "pid"),
    [
        ("Memory cgroup out of memory: Killed process 42 (tmux: server) total-vm:9kB", "tmux: server", 42),
        ("Out of memory: Kill process 42 (java) score 900 or sacrifice child", "java", 42),
        ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python3,pid=42,uid=0", "python3", 42),
        ("System OOM encountered, victim process: node, pid: 42", "node", 42),
        ('sending SIGKILL to process 42 uid 1000 "chrome": badness 1210, VmRSS 66900 MiB', "chrome", 42),
    ],
)
def test_the_victim_in_the_words_of_each_watcher(text: str, name: str, pid: int) -> None:
    victim = killed_process(text)
    assert victim is not None
    assert (victim.name, victim.pid) == (name, pid)


def test_a_full_gpu_kills_nobody() -> None:
    assert killed_process("CUDA out of memory. Process 42 has 3 GiB") is None
    assert victim_of(fault(1, "out_of_memory")) is None


def test_who_watches_a_server_tells_of_it_in_its_own_words() -> None:
    told = "System OOM encountered, victim process: {}, pid: 42"
    server, other = (
        fault(1, "out_of_memory", detail=killed_process(told.format(name))) for name in ("python3", "chrome")
    )
    assert not is_host_kill(server)
    assert is_host_kill(other)


@pytest.mark.parametrize("name", ["chrome", "node", "java", "srv_main"])
def test_a_kill_of_a_process_that_nothing_links_is_no_fault_of_the_program(name: str) -> None:
    assert roles(kill(name)) == ["bystander"]
    assert roles(lost_engine(), kill(name)) == ["root", "bystander"]


@pytest.mark.parametrize(
    "name", ["python3", "VLLM::EngineCor", "llama-server", "text-generation", "ray::Work"]
)
def test_the_name_of_a_model_server_links(name: str) -> None:
    assert roles(kill(name)) == ["root"]
    assert roles(lost_engine(), kill(name)) == ["cascade", "root"]


def test_the_name_or_the_pid_of_a_tag_links() -> None:
    assert program_of([lost_engine(process="srv_main pid=9")]).has(KilledProcess(pid=1, name="srv_main"))
    assert program_of([lost_engine()]).has(KilledProcess(pid=2100, name="x"))
    assert not program_of([lost_engine(), kill("x", pid=7)]).has(KilledProcess(pid=7, name="x"))
    assert roles(lost_engine(), kill("x", pid=2100)) == ["cascade", "root"]


def test_a_kill_of_the_server_at_that_time_links_whatever_the_name() -> None:
    killed = kill("srv_main", **at(NOON))
    assert roles(killed_server(**at(NOON + 1)), killed) == ["cascade", "root"]
    assert roles(killed_server(**at(NOON + 300)), killed) == ["root", "bystander"]
    assert roles(killed_server(), killed) == ["root", "bystander"]
    assert roles(killed_server(source=1), kill("srv_main")) == ["cascade", "root"]


def test_a_kill_at_another_time_explains_nothing() -> None:
    killed = kill("python3", **at(NOON))
    assert roles(lost_engine(**at(NOON + 5400)), killed) == ["root", "bystander"]


def test_an_error_with_a_cause_of_its_own_is_not_explained_by_a_name() -> None:
    """A CUDA error while some other Python of the host was killed."""
    error = fault(5, code=700, process="EngineCore pid=21850", **at(NOON + 1))
    assert roles(error, kill("python3", **at(NOON))) == ["root", "bystander"]


def test_a_killed_rank_explains_the_errors_of_the_others() -> None:
    error = fault(5, code=700, process="Worker pid=7", **at(NOON + 1))
    other = lost_engine(process="Worker pid=4711", **at(NOON + 2))
    assert roles(error, other, kill("x", **at(NOON)))[2] == "root"


def test_who_failed_first_and_was_killed_then_failed_of_its_error() -> None:
    error = fault(5, code=700, process="Worker pid=4711", **at(NOON))
    first, second = assign_roles([error, kill("python3", **at(NOON + 5))])
    assert (first.role, second.role) == ("root", "cascade")
    assert second.reason == "the process of line 5 was killed then"


def test_the_reason_of_what_a_kill_explains_names_it() -> None:
    first, second = assign_roles([lost_engine(), kill("python3")])
    assert first.reason == "the kernel killed python3 (pid 4711) for memory (line 1)"
    assert second.reason.startswith("the kernel killed a process of the program")


def test_a_second_kill_at_that_time_is_of_the_same_shortage() -> None:
    again = kill("python3", pid=9, last_line=1, **at(NOON + 2))
    far = kill("python3", pid=9, last_line=1, **at(NOON + 7200))
    assert roles(kill("python3", **at(NOON)), again) == ["root", "cascade"]
    assert roles(kill("python3", **at(NOON)), far) == ["root", "bystander"]

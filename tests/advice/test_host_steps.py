"""What to run next where the host failed."""

from __future__ import annotations

import pytest

from analyzer.advice.next_steps import next_steps
from analyzer.parse.oom_text import OF_CONTAINER, OF_HOST
from analyzer.schema import Modes
from tests.incident.records import fault

KILLED = "Out of memory: Killed process 42 (python3) total-vm:98304kB"


def commands(**told: object) -> str:
    record = fault(line=1, **told)  # type: ignore[arg-type]
    steps = next_steps(record, "undecided", Modes(), [], has_ops=False)
    assert all(step.why for step in steps)
    return "\n".join(step.command for step in steps)


def test_the_log_of_a_dead_actor_is_named_by_its_pid() -> None:
    told = commands(witness="ray", kind="peer_lost", site="host", relayed=True, pid=4321)
    assert "/tmp/ray/session_latest/logs/worker-*-4321.*" in told
    assert "dmesg" in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5 bytes.", "--xla_dump_to="),
        (f"{KILLED} ({OF_HOST})", "ps -eo pid,rss"),
        (f"Memory cgroup out of memory: {KILLED[15:]} ({OF_CONTAINER})", "/sys/fs/cgroup/memory.max"),
        (f"oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=42 ({OF_CONTAINER})", "memory.max"),
    ],
)
def test_who_ran_out_of_memory_decides_what_to_look_at(text: str, words: str) -> None:
    assert words in commands(witness="oom", kind="out_of_memory", site="host", text=text)


def test_a_rank_of_which_only_the_exit_code_is_known_gets_a_log_of_its_own() -> None:
    told = commands(witness="torchrun", kind="unknown", site="host", relayed=True, rank=3)
    assert told.startswith("torchrun --log-dir")


def test_an_exception_is_looked_at_where_it_was_raised() -> None:
    assert "pdb" in commands(witness="python_traceback", kind="unknown", site="host")


@pytest.mark.parametrize("witness", ["c10", "python_traceback"])
def test_a_driver_that_does_not_fit_is_compared_with_the_build(witness: str) -> None:
    text = "CUDA driver version is insufficient for CUDA runtime version"
    assert "torch.version.cuda" in commands(witness=witness, kind="configuration", site="host", text=text)

"""Which switches are set, and that what the user set wins."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from analyzer.errors import UsageError
from analyzer.record.switches import HOOKS, Level, Plan, Target, plan_switches
from tests.record.children import python, run

COMMAND = ["python", "serve.py"]
OPS = Path("/logs/serve.log.ops")


def plan(target: Target, level: Level = "ops", env: dict[str, str] | None = None) -> Plan:
    return plan_switches(COMMAND, target, level, env or {}, coredump=Path("/logs/serve.log"), ops=OPS)


def environment(target: Target, level: Level = "ops", env: dict[str, str] | None = None) -> dict[str, str]:
    return plan(target, level, env).environment(env or {})


def test_trace_is_written_in_capitals() -> None:
    """MAX ends with a TypeError at op-log-level=trace (observed.md 1)."""
    assert environment("max")["MODULAR_DEBUG"] == "op-log-level=TRACE,source-tracebacks"


@pytest.mark.parametrize("level", ["ops", "sync"])
def test_the_users_modular_debug_is_merged_not_overridden(level: Level) -> None:
    merged = environment("max", level, {"MODULAR_DEBUG": "nan-check,op-log-level=DEBUG"})["MODULAR_DEBUG"]
    assert merged.startswith("nan-check,op-log-level=DEBUG,source-tracebacks")
    assert ("device-sync-mode" in merged) == (level == "sync")
    assert merged.count("op-log-level") == 1


def test_lower_case_of_the_user_stays_and_is_pointed_out() -> None:
    found = plan("max", env={"MODULAR_DEBUG": "op-log-level=trace"})
    assert "op-log-level=trace" in found.environment({})["MODULAR_DEBUG"]
    assert any("write op-log-level=TRACE" in note for note in found.notes)


def test_core_dumps_skip_the_memories() -> None:
    env = environment("torch")
    assert env["CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] == env["CUDA_COREDUMP_SHOW_PROGRESS"] == "1"
    flags = env["CUDA_COREDUMP_GENERATION_FLAGS"].split(",")
    assert {"skip_global_memory", "skip_shared_memory", "skip_local_memory"} <= set(flags)
    assert env["CUDA_COREDUMP_FILE"].startswith("/logs/serve.log.")


@pytest.mark.parametrize("target", get_args(Target))
def test_nothing_that_the_user_set_is_changed(target: Target) -> None:
    lists = {"MODULAR_DEBUG", "PYTHONPATH"}
    ours = {one.name for one in plan(target, "sync").switches}
    users = dict.fromkeys(ours - lists, "mine")
    found = plan(target, "sync", users)
    assert {name: found.environment(users)[name] for name in users} == users
    assert {one.name for one in found.switches if one.kept} == set(users)


def test_blocking_levels() -> None:
    assert environment("torch", "sync")["CUDA_LAUNCH_BLOCKING"] == "1"
    assert "CUDA_LAUNCH_BLOCKING" not in environment("torch", "ops")
    assert environment("rocm", "sync")["AMD_SERIALIZE_KERNEL"] == "3"
    assert "CUDA_LAUNCH_BLOCKING" not in environment("max", "sync")
    assert environment("aoti", "sync")["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"


def test_values_of_cuda_tensors_are_read_at_the_blocking_level_only() -> None:
    values = {
        level: environment("torch", level)["TRACE_ANALYZE_INPUTS"] for level in ("light", "ops", "sync")
    }
    assert values == {"light": "none", "ops": "cpu", "sync": "sync"}


def test_the_hook_goes_in_front_of_the_users_path() -> None:
    assert environment("torch", env={"PYTHONPATH": "/mine"})["PYTHONPATH"] == f"{HOOKS}:/mine"
    assert environment("max")["PYTHONPATH"] == str(HOOKS)
    assert environment("max")["TRACE_ANALYZE_MAX_STEPS"] == "1"
    assert "PYTHONPATH" not in environment("max", level="light")
    assert "PYTHONPATH" not in environment("aoti")


def test_sanitize_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="compute-sanitizer on PATH"):
        plan("torch", "sanitize")
    with pytest.raises(UsageError, match="NVIDIA GPUs only"):
        plan("rocm", "sanitize")


def test_sanitize_runs_the_command_inside_and_takes_no_core_dump(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = plan("torch", "sanitize")
    assert found.command[0] == "compute-sanitizer"
    assert found.command[-2:] == COMMAND
    assert not any("COREDUMP" in one.name for one in found.switches)


def test_the_child_sees_the_switches_and_the_log_and_the_terminal_say_so(tmp_path: Path) -> None:
    code = "import os; print(os.environ['MODULAR_DEBUG'], os.environ['CUDA_COREDUMP_SHOW_PROGRESS'])"
    users = {"CUDA_COREDUMP_SHOW_PROGRESS": "0", "MODULAR_DEBUG": "nan-check"}
    recorded = run(tmp_path / "serve.log", python(code), users, quiet=False)
    assert recorded.stdout == b"nan-check,op-log-level=TRACE,source-tracebacks 0\n"
    assert b"set MODULAR_DEBUG=nan-check,op-log-level=TRACE,source-tracebacks" in recorded.stderr
    assert b"set CUDA_COREDUMP_SHOW_PROGRESS" not in recorded.stderr
    assert recorded.trailer.switches["MODULAR_DEBUG"] == "nan-check,op-log-level=TRACE,source-tracebacks"
    assert recorded.trailer.switches["CUDA_COREDUMP_SHOW_PROGRESS"] == "0"

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.replay.hooks.config import VARIABLE, HookConfig
from analyzer.replay.report import Rung
from analyzer.replay.switches import environment, framework_of, merge_modular_debug, switches
from tests.replay.results import log


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("", "op-log-level=TRACE,source-tracebacks,device-sync-mode"),
        ("nan-check", "op-log-level=TRACE,source-tracebacks,device-sync-mode,nan-check"),
        (
            " op-log-level=trace , ir-output-dir=/x ",
            "op-log-level=TRACE,source-tracebacks,device-sync-mode,ir-output-dir=/x",
        ),
        ("device-sync-mode", "op-log-level=TRACE,source-tracebacks,device-sync-mode"),
    ],
)
def test_the_users_max_options_are_kept_and_ours_win(user: str, expected: str) -> None:
    """Upper case, once each (observed.md 1, 20)."""
    assert merge_modular_debug(user, sync=True) == expected


def test_locating_runs_without_sync_mode_even_if_the_user_set_it() -> None:
    assert "device-sync-mode" not in merge_modular_debug("device-sync-mode", sync=False)


@pytest.mark.parametrize(
    ("rung", "blocking"), [("blocking", True), ("uncached", True), ("coredump", False), ("locate", False)]
)
def test_only_serialised_attempts_launch_blocking(rung: Rung, blocking: bool, tmp_path: Path) -> None:
    user = {"CUDA_LAUNCH_BLOCKING": "1", "PYTHONPATH": "/mine"}
    env = environment(user, switches(rung, user, tmp_path), HookConfig(journal="j"))
    assert ("CUDA_LAUNCH_BLOCKING" in env) is blocking
    assert env["PYTHONPATH"].endswith(":/mine")
    assert VARIABLE in env


def test_core_files_go_to_the_folder_of_the_replay(tmp_path: Path) -> None:
    assert switches("coredump", {}, tmp_path)["CUDA_COREDUMP_FILE"].startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("witnesses", "framework"),
    [(("max_errors",), "max"), (("c10", "python_traceback"), "torch"), ((), "other")],
)
def test_the_framework_is_told_by_the_witnesses(witnesses: tuple[str, ...], framework: str) -> None:
    assert framework_of(log(witnesses=witnesses)) == framework

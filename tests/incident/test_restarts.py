"""What servers and launchers print when they start parts two crashes; one start alone does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import analyze

IMA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
MISALIGNED = "torch.AcceleratorError: CUDA error: misaligned address\n"
DIED = "Segmentation fault (core dumped)\n"
DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n"
BANNERS = [
    "INFO 11-29 03:00:01 [api_server.py:1839] vLLM API server version 0.11.0",
    "INFO 11-29 03:00:14 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m'",
    "[2026-05-26 07:48:17] server_args=ServerArgs(model_path='m', tp_size=2)",
    "INFO:     Started server process [4123]",
    'time=2026-05-26T07:48:17.049+08:00 level=INFO source=server.go:405 msg="starting llama server" cmd="x"',
    "build: 5142 (1d735c0b) with cc (Debian 12.2.0) for x86_64-linux-gnu",
    "[TensorRT-LLM] TensorRT LLM version: 1.0.0",
    '[RECORD] START command="python serve.py" target=torch level=ops host=gpu-7 file=0',
]
AGAIN = [
    "[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
    "Nov 29 03:12:50 host systemd[1]: serve.service: Scheduled restart job, restart counter is at 3.",
]


def roles(folder: Path, *lines: str) -> list[tuple[str, str]]:
    path = folder / "serve.log"
    path.write_text("".join(f"{line.rstrip()}\n" for line in lines))
    found = analyze([str(path)])
    assert found.losses == []
    return [(fault.kind, fault.role) for fault in found.faults]


@pytest.mark.parametrize("banner", BANNERS)
def test_the_same_start_again_parts_two_crashes(tmp_path: Path, banner: str) -> None:
    found = roles(tmp_path, banner, IMA, banner, MISALIGNED)
    assert found == [("illegal_address", "bystander"), ("misaligned_address", "root")]


@pytest.mark.parametrize("banner", BANNERS)
def test_a_start_that_is_seen_once_can_be_that_of_another_server(tmp_path: Path, banner: str) -> None:
    found = roles(tmp_path, IMA, banner, MISALIGNED)
    assert found == [("illegal_address", "root"), ("misaligned_address", "cascade")]


@pytest.mark.parametrize("banner", BANNERS)
def test_a_start_behind_the_end_of_the_process_parts(tmp_path: Path, banner: str) -> None:
    found = roles(tmp_path, IMA, DIED, banner, MISALIGNED)
    assert found[0][1] == "bystander"
    assert found[-1] == ("misaligned_address", "root")


@pytest.mark.parametrize("line", AGAIN)
def test_a_launcher_that_starts_again_needs_no_earlier_start(tmp_path: Path, line: str) -> None:
    assert roles(tmp_path, IMA, line, MISALIGNED)[-1] == ("misaligned_address", "root")


@pytest.mark.parametrize("later", [DEAD, "[rank1]: torch.distributed.DistBackendError: x\n", "ok\n"])
def test_after_a_restart_a_victim_leaves_the_crash_before_it_the_root(tmp_path: Path, later: str) -> None:
    assert roles(tmp_path, BANNERS[0], IMA, BANNERS[0], later)[0] == ("illegal_address", "root")


def test_another_container_starts_for_itself(tmp_path: Path) -> None:
    one, two = "vllm-1  | ", "vllm-2  | "
    found = roles(tmp_path, two + BANNERS[0], one + IMA, two + BANNERS[0], one + MISALIGNED)
    assert found == [("illegal_address", "root"), ("misaligned_address", "cascade")]


def test_a_sticky_error_long_after_the_death_of_its_writer_is_a_new_run(tmp_path: Path) -> None:
    stamp = "2026-11-29 03:{}:00,000 - serve - ERROR - "
    lines = (stamp.format("04") + IMA, stamp.format("05") + DIED)
    near, far = stamp.format("06") + MISALIGNED, stamp.format("30") + MISALIGNED
    assert roles(tmp_path, *lines, far)[-1] == ("misaligned_address", "root")
    assert roles(tmp_path, *lines, near)[-1] == ("misaligned_address", "cascade")


def test_a_quoted_banner_starts_nothing(tmp_path: Path) -> None:
    said = "INFO 11-29 03:00:01 [a.py:1] see vLLM API server version 0.11.0 for it"
    assert roles(tmp_path, said, IMA, said, MISALIGNED)[0] == ("illegal_address", "root")

"""The recorder's own lines: what is written can be read back."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.record.trailer import parse_line, parse_trailer, render_line
from analyzer.record.versions import child_python
from tests.record.children import python, run

KEYS = st.from_regex(r"[a-z_][a-z0-9_.\-]{0,10}", fullmatch=True)


@given(st.dictionaries(KEYS, st.text(max_size=30), max_size=5))
def test_any_values_come_back(pairs: dict[str, str]) -> None:
    line = render_line("VERSION", pairs)
    assert "\n" not in line
    assert parse_line(line) == ("VERSION", pairs)


def test_a_program_that_prints_something_alike_is_not_believed() -> None:
    assert parse_line("[RECORD] BOGUS a=1") is None
    assert parse_line("[RECORD] EXIT code=1 and more words") is None
    assert parse_line("x [RECORD] EXIT code=1") is None


def test_a_whole_trailer() -> None:
    lines = [
        '[RECORD] START command="python serve.py" target=torch level=ops host=gpu-7 file=0',
        "[RECORD] SET name=CUDA_COREDUMP_SHOW_PROGRESS value=1",
        "something of the program",
        "[RECORD] EXIT signal=SIGSEGV code=139 duration_s=12.345",
        "[RECORD] VERSION driver=580.65 cuda=13.0 torch=2.11.0",
        '[RECORD] GPU index=0 name="NVIDIA H200" memory_mib=143771',
        "[RECORD] END bytes=12 lost_bytes=0 unterminated=stderr open=none",
    ]
    found = parse_trailer(lines)
    assert found.command == "python serve.py"
    assert (found.signal, found.exit_code, found.duration_s) == ("SIGSEGV", 139, 12.345)
    assert found.versions["cuda"] == "13.0"
    assert found.gpus == [{"index": "0", "name": "NVIDIA H200", "memory_mib": "143771"}]
    assert (found.unterminated, found.open_streams) == (["stderr"], [])


def test_a_log_of_a_killed_recorder_has_no_exit() -> None:
    assert parse_trailer(["[RECORD] START command=x target=any level=ops file=0"]).exit_code is None


def test_driver_and_gpus_come_from_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        '#!/bin/sh\ncase "$1" in\n'
        '--query*) echo "0, NVIDIA H200, 580.65.06, 143771";;\n'
        '*) echo "| NVIDIA-SMI 580.65.06   Driver Version: 580.65.06   CUDA Version: 13.0  |";;\nesac\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    trailer = run(tmp_path / "serve.log", python("print(1)")).trailer
    assert trailer.versions["driver"] == "580.65.06"
    assert trailer.versions["cuda"] == "13.0"
    assert trailer.gpus == [{"index": "0", "name": "NVIDIA H200", "memory_mib": "143771"}]
    assert trailer.versions["python"] == sys.version.split()[0]


def test_the_python_of_a_script_is_the_one_in_its_first_line(tmp_path: Path) -> None:
    script = tmp_path / "vllm"
    script.write_text(f"#!{sys.executable}\nprint(1)\n")
    script.chmod(0o755)
    assert child_python([str(script), "serve"]) == sys.executable
    assert child_python(["env", sys.executable, "serve.py"]) == sys.executable
    assert child_python([shutil.which("true") or "true"]) is None

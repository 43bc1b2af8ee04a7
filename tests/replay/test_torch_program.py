"""Program replay of PyTorch programs on the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.replay.attempts import ReplayOptions
from analyzer.replay.program import replay_program
from analyzer.replay.report import ReplayReport
from tests.replay import children
from tests.replay.results import log

PROGRAMS = Path(__file__).parent / "programs"
HANG_S = 10.0  # waited out twice; several times what the import of torch takes


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


def replay(folder: Path, program: str, *arguments: str, deadline_s: float = 60.0) -> ReplayReport:
    command = [sys.executable, str(PROGRAMS / program), *arguments]
    return replay_program(log(), command, ReplayOptions(folder=folder, deadline_s=deadline_s))


def line_of(program: str, text: str) -> int:
    lines = (PROGRAMS / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_an_index_out_of_range_in_step_7_is_confirmed_with_op_line_and_step(tmp_path: Path) -> None:
    """CPU acceptance of issue C, from the log of the failed run to the verdict."""
    command = [sys.executable, str(PROGRAMS / "torch_steps.py"), "7", "10"]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    (tmp_path / "serve.log").write_text(failed.stdout + failed.stderr)
    result = analyze([str(tmp_path / "serve.log")])
    report = replay_program(result, command, ReplayOptions(folder=tmp_path / "replay"))
    assert report.verdict == "confirmed", report.statement
    assert report.op is not None
    assert report.op.name == "aten::embedding"
    assert report.op.step == 7
    assert report.op.source is not None
    assert Path(report.op.source.file).name == "torch_steps.py"
    assert report.op.source.line == line_of("torch_steps.py", "self.embedding(ids)")
    assert report.control is not None
    assert "sound earlier" in report.control
    assert "input 1: values from 0 to 100" in report.op.notes


def test_the_line_that_made_the_bad_index_is_named_as_producer(tmp_path: Path) -> None:
    report = replay(tmp_path, "torch_steps.py", "7", "10")
    assert report.producer is not None
    assert report.producer.source is not None
    assert report.producer.source.line == line_of("torch_steps.py", "ids[3] = 100")


def test_an_index_made_between_two_model_calls_is_put_in_neither_step(tmp_path: Path) -> None:
    """The loop is in step 7 when it writes the index; the hook sees only that the call of step 6 is over."""
    producer = replay(tmp_path, "torch_steps.py", "7", "10").producer
    assert producer is not None
    assert producer.step is None
    assert producer.notes == ("between the model calls of step 6 and step 7",)


def test_the_same_program_healthy_is_not_reproduced(tmp_path: Path) -> None:
    report = replay(tmp_path, "torch_steps.py", "-1", "10")
    assert report.verdict == "not_reproduced", report.statement
    assert [one.outcome for one in report.attempts] == ["passed", "passed"]
    assert all(one.reached for one in report.attempts)
    assert report.rules_out
    assert report.skipped  # the rungs for devices


def test_a_process_that_dies_inside_an_op_is_named_from_the_journal(tmp_path: Path) -> None:
    report = replay(tmp_path, "torch_more.py", "dies")
    assert report.verdict == "confirmed", report.statement
    assert report.op is not None
    assert report.op.name == "tests::dies"
    assert report.attempts[-1].rung == "control"


def test_a_hang_names_the_op_that_does_not_end(tmp_path: Path) -> None:
    report = replay(tmp_path, "torch_more.py", "sleeps", deadline_s=HANG_S)
    assert report.verdict == "hang", report.statement
    assert report.op is not None
    assert report.op.name == "tests::sleeps"
    assert children.left_behind() == []


def test_an_op_in_a_worker_thread_is_seen(tmp_path: Path) -> None:
    report = replay(tmp_path, "torch_more.py", "in_thread")
    assert report.verdict == "confirmed", report.statement
    assert report.op is not None
    assert report.op.name == "aten::embedding"


def test_an_error_that_the_program_handles_is_no_failure(tmp_path: Path) -> None:
    assert replay(tmp_path, "torch_more.py", "handled").verdict == "not_reproduced"


def test_a_server_that_waits_for_work_at_the_deadline_does_not_hang(tmp_path: Path) -> None:
    report = replay(tmp_path, "torch_more.py", "serve", deadline_s=HANG_S)
    assert report.verdict == "not_reproduced", report.statement
    assert "waiting for work" in report.statement


def test_a_failure_in_host_code_outside_any_op_is_not_put_on_an_op(tmp_path: Path) -> None:
    report = replay(tmp_path, "torch_more.py", "assertion")
    assert report.verdict == "not_replayable"
    assert report.op is None


def test_the_printed_traceback_is_that_of_the_program_alone(tmp_path: Path) -> None:
    report = replay(tmp_path, "torch_steps.py", "2", "3")
    printed = Path(report.attempts[-1].output).read_text()
    assert "IndexError: index out of range in self" in printed
    assert "replay/hooks" not in printed

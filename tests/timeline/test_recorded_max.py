"""A real op log of MAX as ``trace-analyze record`` stamps it, and the same without stamps (observed.md 8)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from analyzer.grammar import data_path
from analyzer.pipeline import open_analysis
from analyzer.timeline.timing import step_times

ROOT = Path(__file__).parents[2]
RECORDED = data_path("sample_logs") / "max_ops/recorded_cpu/input.log"
STEPS = 8


def timeline(path: object) -> str:
    command = [sys.executable, "-m", "analyzer", str(path), "--timeline", "--width", "140"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_recorded_log_gives_step_times_of_the_host() -> None:
    with open_analysis([str(RECORDED)]) as analysis:
        assert analysis.result.timeline.timing_basis == "host"
        steps = step_times(analysis.timeline.ops)
    assert steps["step"].to_list() == list(range(STEPS))
    assert all(5e6 < length < 50e6 for length in steps["duration_ns"])  # 2 matmuls of 512 x 1024 x 1024
    text = timeline(RECORDED)
    assert "times are host times" in text
    assert re.search(rf"Steps: {STEPS}, median 11\.\d ms, 0 outliers", text)


def test_the_same_log_without_stamps_prints_no_times(tmp_path: Path) -> None:
    plain = tmp_path / "serve.log"
    plain.write_text(re.sub(r"(?m)^\S+ std(?:out|err) F ", "", RECORDED.read_text()))
    with open_analysis([str(plain)]) as analysis:
        assert analysis.result.timeline.timing_basis == "none"
        steps = step_times(analysis.timeline.ops)
    assert steps["ops"].to_list() == [5] * STEPS
    assert steps["duration_ns"].null_count() == STEPS
    text = timeline(plain)
    assert "this log has no clock" in text
    assert f"Steps: {STEPS}\n" in text
    assert not re.search(r"\d (?:ns|us|ms)\b", text)

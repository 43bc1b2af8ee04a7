"""Program replay of a MAX program on the CPU. The first compile of the graph takes minutes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.replay.attempts import ReplayOptions
from analyzer.replay.program import replay_program

PROGRAM = Path(__file__).parent / "programs" / "max_raise.py"

pytestmark = pytest.mark.max


@pytest.fixture(autouse=True)
def _max(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile cache for this text of the program: MAX 26.7 keeps the source lines of the first compile.

    A program whose lines moved is found in a shared cache with its old lines.
    """
    pytest.importorskip("max.engine")
    digest = hashlib.sha256(PROGRAM.read_bytes()).hexdigest()[:16]
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(tempfile.gettempdir()) / f"trace-analyze-max-{digest}"))


def _log(folder: Path, case: str) -> Path:
    env = {**os.environ, "MODULAR_DEBUG": "op-log-level=TRACE,source-tracebacks"}
    command = [sys.executable, str(PROGRAM), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    path = folder / "serve.log"
    path.write_text(done.stdout + done.stderr)
    return path


def test_a_raising_custom_op_is_confirmed_with_its_source_line(tmp_path: Path) -> None:
    """MAX on CPU, acceptance of issue C."""
    result = analyze([str(_log(tmp_path, "raise"))])
    report = replay_program(
        result, [sys.executable, str(PROGRAM), "raise"], ReplayOptions(folder=tmp_path / "replay")
    )
    assert report.verdict == "confirmed", report.statement
    assert report.op is not None
    assert report.op.name == "custom__raising_op"
    assert report.op.step == 0
    assert report.op.source is not None
    assert "table = ops.custom(" in PROGRAM.read_text().splitlines()[report.op.source.line - 1]
    assert report.comparison is not None
    assert (report.comparison.same_kind, report.comparison.same_op) == (True, True)


def test_the_same_graph_with_a_sound_op_is_not_reproduced(tmp_path: Path) -> None:
    result = analyze([str(_log(tmp_path, "sound"))])
    report = replay_program(
        result, [sys.executable, str(PROGRAM), "sound"], ReplayOptions(folder=tmp_path / "replay")
    )
    assert report.verdict == "not_reproduced", report.statement
    assert [one.rung for one in report.attempts] == ["locate", "blocking", "blocking"]

"""A ring given to ``trace-analyze`` itself: what a crashed process left where nobody wrote its log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from analyzer.record.ops.ring import HEADER_BYTES, Ring
from tests.record.children import ROOT


def ring_of(path: Path, count: int, *, unfinished: int = 1) -> Path:
    """Ops of two to a step; the last ones did not return."""
    ring = Ring(str(path), 64, 1 << 16, 1024)
    for n in range(count):
        ring.launch(
            n, f"aten::op{n % 2}\n;target=cuda:0".encode(), b"srv/app/serve.py:7:step", None, n // 2 + 1
        )
        if n < count - unfinished:
            ring.returned(n)
    ring.close()
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "analyzer", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_ring_is_analysed_as_the_op_log_that_it_holds(tmp_path: Path) -> None:
    code, out, _ = run(ring_of(tmp_path / "7.ring", 8), "--format", "json")
    assert code == 0
    result = json.loads(out)
    assert (result["timeline"]["ops"], result["timeline"]["steps"]) == (8, 4)
    assert result["timeline"]["timing_basis"] == "host"
    (note,) = result["inputs"][0]["notes"]
    assert "not returned when it ended: aten::op1 (id 7)" in note
    assert note.endswith("give its log too")
    assert result["inputs"][0]["path"] == str(tmp_path / "7.ring")


def test_the_window_of_a_fault_in_another_input_is_taken_from_the_ring(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "/srv/app/serve.py", line 9, in main\n'
        "    print(x.item())\n"
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
    )
    code, out, _ = run(ring_of(tmp_path / "7.ring", 8), log, "--format", "json")
    assert code == 0
    window = json.loads(out)["window"]
    assert [op["id"] for op in window["ops"]] == [4, 5, 6, 7]
    assert window["steps"] == [2, 3]


def test_a_ring_without_ops_and_a_broken_one_are_told(tmp_path: Path) -> None:
    code, _, err = run(ring_of(tmp_path / "7.ring", 0, unfinished=0))
    assert code == 3
    assert "a ring of ops without any op" in err
    cut = tmp_path / "8.ring"
    cut.write_bytes((tmp_path / "7.ring").read_bytes()[: HEADER_BYTES - 9])
    code, _, err = run(cut)
    assert code == 3
    assert "too short for a ring of ops" in err

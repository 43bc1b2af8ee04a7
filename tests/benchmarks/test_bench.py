"""The benchmark itself: a log like the real one, a child that is measured. Limits at 1 GB are `heavy`."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.grammar import data_path
from tests.benchmarks import bench
from tests.benchmarks.make_log import BYTES_PER_MB, SAMPLE, make_log, split_sample


def ids(text: bytes, kind: bytes) -> list[int]:
    return [int(number) for number in re.findall(rb"^\[OP\] %s .*\[id=(\d+)\]" % kind, text, re.MULTILINE)]


def test_made_log_keeps_the_real_head_and_tail_and_continues_the_ids(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    size = make_log(path, 2 * BYTES_PER_MB)
    text = path.read_bytes()
    parts = split_sample(gzip.decompress((data_path("sample_logs") / SAMPLE).read_bytes()))
    assert size == len(text)
    assert 0 <= size - 2 * BYTES_PER_MB < 30_000
    assert text.startswith(parts.head)
    assert text.splitlines()[-8:] == parts.tail.splitlines()[-8:]
    launches = ids(text, b"LAUNCH")
    assert launches == list(range(len(launches)))
    assert sorted(ids(text, b"COMPLETE")) == launches


def test_made_log_of_the_smallest_size_is_the_sample_but_for_its_clock(tmp_path: Path) -> None:
    path = tmp_path / "small.log"
    make_log(path, 0)
    clock = re.compile(rb"^\d\d:\d\d:\d\d\.\d{3} (?=INFO: step)", re.MULTILINE)
    sample = gzip.decompress((data_path("sample_logs") / SAMPLE).read_bytes())
    assert clock.sub(b"", path.read_bytes()) == clock.sub(b"", sample)


def test_failing_child_is_an_error_not_a_time(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        bench.run_child([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "out")


def test_child_is_measured_not_the_parent(tmp_path: Path) -> None:
    program = "import time; block = b'x' * 200_000_000; time.sleep(0.2)"
    run = bench.run_child([sys.executable, "-c", program], tmp_path / "out")
    assert run.memory_bytes > 200_000_000
    assert run.wall_s > 0.2


def test_limits_are_told_one_by_one() -> None:
    fast = bench.Run(wall_s=1.0, memory_bytes=1)
    slow = bench.Run(wall_s=12.1, memory_bytes=bench.MAX_MEMORY_BYTES + 1)
    assert bench.problems(bench.Outcome(size_bytes=1, grep=fast, analysis=fast)) == []
    found = bench.problems(bench.Outcome(size_bytes=1, grep=fast, analysis=slow))
    assert [line.split()[0] for line in found] == ["ratio", "peak"]


def test_analysis_of_20_mb_finds_the_fault_and_the_guilty_op(tmp_path: Path) -> None:
    log = tmp_path / "big.log"
    make_log(log, 20 * BYTES_PER_MB)
    outcome = bench.measure(log, rounds=1)
    launches = int(log.with_suffix(".count").read_text(encoding="utf-8"))
    result = json.loads(log.with_suffix(".json").read_bytes())
    assert result["timeline"]["ops"] == launches
    assert result["suspects"][0]["op"]["name"] == "custom__paged_lookup"
    assert "trace-analyze" in bench.render(outcome)


@pytest.mark.heavy
def test_one_gigabyte_stays_within_the_limits() -> None:
    assert bench.main(["--size-mb", "1000", "--check"]) == 0

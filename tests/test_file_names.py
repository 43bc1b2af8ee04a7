"""Names of inputs that are hard to open or to write: a clear refusal, or an analysis and its reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FAULT = "RuntimeError: CUDA error: an illegal memory access was encountered\n"


def run(*arguments: str | bytes, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "analyzer", *arguments], cwd=cwd, capture_output=True, check=False
    )


def test_a_name_that_is_no_utf8_is_written_with_escapes(tmp_path: Path) -> None:
    """In the JSON as in all reports."""
    name = b"a\xff\xfe.log"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(FAULT)
    reports = ["r.md", "r.html", "r.json", "r.sarif", "r.xml", "r.perfetto.json"]
    options = [part for report in reports for part in ("--report", report)]
    done = run(name, "--format", "json", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["inputs"][0]["path"] == "a\\xff\\xfe.log"
    assert all((tmp_path / report).read_text() for report in reports)


@pytest.mark.parametrize(
    "name", ["loop", "x" * 5000, "folder", b"no\xff"], ids=["loop", "long", "folder", "bytes"]
)
def test_what_cannot_be_opened_is_refused_with_one_line(name: str | bytes, tmp_path: Path) -> None:
    """Exit code 3, no traceback."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    done = run(name, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1

"""A real small file system that gets full: a message, the right exit code, and nothing half written stays."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.full_disk import needs_small_disk, on_small_disk
from tests.test_signals import FAULT, LOG, OPS, ROOT


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    needs_small_disk()
    (tmp_path / "disk").mkdir()
    (tmp_path / "ops.log").write_text(OPS + FAULT.read_text())
    return tmp_path / "disk"


def run(disk: Path, size: str, variable: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard error, and the files that are left on the disk at the end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(disk.parent / "state")}
    environment |= {variable: str(disk)} if variable else {}
    command = [sys.executable, "-m", "analyzer", *arguments]
    script = f'"$@"; code=$?; find {disk} -type f -o -name "20*" >{disk.parent}/left; exit $code'
    whole = on_small_disk(disk, size, ["sh", "-c", script, "sh", *command])
    done = subprocess.run(
        whole, cwd=disk.parent, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stderr, (disk.parent / "left").read_text()


def test_no_room_for_a_plain_copy(disk: Path) -> None:
    code, err, left = run(disk, "100k", "TMPDIR", str(LOG))
    assert (code, left) == (3, "")
    assert "no room for a plain copy" in err
    assert len(gzip.decompress(LOG.read_bytes())) > 100_000


def test_no_room_for_a_report_and_the_state_is_not_missed(disk: Path) -> None:
    code, err, left = run(disk, "16k", "XDG_STATE_HOME", str(LOG), "--report", f"{disk}/a.html")
    assert (code, left) == (3, "")
    assert "no space left on the device" in err
    assert run(disk, "4k", "XDG_STATE_HOME", str(LOG)) == (0, "", "")


@pytest.mark.parametrize("size", ["4k", "8k"])
def test_no_room_for_a_plan_of_a_replay(disk: Path, size: str) -> None:
    code, err, left = run(disk, size, "XDG_STATE_HOME", "ops.log", "--replay")
    assert (code, "/replay/" in left) == (74, False), err
    assert "No space left on device" in err
    assert "bug of ours" not in err


def test_an_attempt_on_a_full_disk_shows_nothing(disk: Path) -> None:
    """A program that fails for want of room has not failed as the log's."""
    code = "print('x' * 200000, flush=True); raise RuntimeError('CUDA error: an illegal memory access')"
    command = ["--replay", "--deadline", "20", "--format", "json", "--", sys.executable, "-c", code]
    exit_code, err, _ = run(disk, "64k", "XDG_STATE_HOME", str(LOG), *command)
    assert exit_code == 5, err


def test_an_interpreter_by_a_relative_path_is_the_one_here(disk: Path) -> None:
    worker = disk.parent / "worker"
    worker.write_text(f"#!/bin/sh\ntouch {disk.parent}/ran\nkill -SEGV $$\n")
    worker.chmod(0o755)
    run(disk, "8m", "", "ops.log", "--replay", "--python", "./worker")
    assert (disk.parent / "ran").exists()


@pytest.mark.parametrize("size", ["4k", "24k", "36k"])
def test_tables_of_grammars_are_kept_whole_or_not_at_all(disk: Path, size: str) -> None:
    folder = f"{disk}/trace-analyze"
    whole = Path(disk.parent / "whole")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(whole)}
    command = [sys.executable, "-m", "analyzer", str(LOG)]
    subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120)
    sizes = {one.name: one.stat().st_size for one in (whole / "trace-analyze").iterdir()}
    script = f'"$@" && cd {folder} && for f in * .[!.]*; do test -e "$f" && stat -c "%n %s" "$f"; done; true'
    small = on_small_disk(disk, size, ["sh", "-c", script, "sh", *command, "--format", "json", "--quiet"])
    environment["XDG_CACHE_HOME"] = str(disk)
    done = subprocess.run(small, env=environment, capture_output=True, text=True, check=False, timeout=120)
    kept = [line.split() for line in done.stdout.rpartition("}\n")[2].splitlines()]
    assert done.returncode == 0
    assert all(abs(sizes[name] - int(told)) < 100 for name, told in kept)  # they differ a little, by run
    assert len(kept) < len(sizes)

"""Signals at any moment of an analysis, a replay, a recording: no folder, process or half a file stays."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from analyzer.grammar import data_path
from analyzer.replay.processes import all_processes

ROOT = Path(__file__).parents[1]
LOG = data_path("sample_logs") / "max_ops" / "paged_async" / "input.log.gz"
NUMBERS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
GONE_S = 15.0  # from SIGTERM to SIGKILL, on a busy machine
MARK = "TEST_SIGNALS"  # in the environment of all that a run starts
# A program with a child that has left the session and ignores SIGTERM; it ends that one itself when it may.
PROGRAM = textwrap.dedent(
    """
    import subprocess, sys, time
    code = "import os, time; from signal import *; os.setsid(); signal(SIGTERM, SIG_IGN); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-S", "-c", code])
    for number in range(20):
        print("step", number, flush=True)
        time.sleep(0.01)
    child.kill()
    child.wait()
    raise SystemExit("RuntimeError: CUDA error: an illegal memory access was encountered")
    """
)
WORKER = f"#!/bin/sh\n{sys.executable} -S -c 'import time; time.sleep(0.2)'\nkill -SEGV $$\n"
REPORTS = ("a.md", "a.html", "a.json", "a.csv")
OPS = (
    "[OP] LAUNCH aten::embedding [id=3] "
    "target=cuda:0;weight=4x2xfloat32;indices=1xint64;indices.min=0;indices.max=99\n"
    "[OP] COMPLETE aten::embedding [id=3] target=cuda:0\n"
)
FAULT = data_path("sample_logs") / "max_errors" / "oob_no_oplog" / "input.log"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of run. ``outputs``: files that it writes where it is started, whole or not at all."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...] = ()


def _written(names: tuple[str, ...]) -> tuple[str, ...]:
    reports = [part for name in names if not name.endswith("csv") for part in ("--report", name)]
    return (*reports, "--timeline-csv", "a.csv")


RUNS = {
    one.name: one
    for one in (
        Run(name="analysis", arguments=(str(LOG), *_written(REPORTS)), outputs=REPORTS),
        Run(
            name="replay of a program",
            arguments=(str(LOG), "--replay", "--deadline", "20", "--", sys.executable, "-S", "program.py"),
        ),
        Run(
            name="replay of ops",
            arguments=("ops.log", "--replay", "--python", "./worker", "--save-plan", "plan.json"),
            outputs=("plan.json",),
        ),
        Run(
            name="recording",
            arguments=("record", "-o", "r.log", "--for", "torch", "--", sys.executable, "-S", "program.py"),
            outputs=("r.log",),
        ),
    )
}


class Place:
    """A folder of its own for each run: where it is started, temporary files, state. The cache is shared."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.mark = mark
        self.here, self.temporary, self.state = folder / "here", folder / "tmp", folder / "state"
        for one in (self.here, self.temporary, self.state):
            one.mkdir(parents=True)
        (self.here / "program.py").write_text(PROGRAM)
        (self.here / "worker").write_text(WORKER)
        (self.here / "worker").chmod(0o755)
        (self.here / "ops.log").write_text(OPS + FAULT.read_text())
        self.given = {one.name for one in self.here.iterdir()}

    def start(self, run: Run) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            MARK: self.mark,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            "XDG_STATE_HOME": str(self.state),
        }
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        command = [sys.executable, "-m", "analyzer", *run.arguments]
        return subprocess.Popen(command, cwd=self.here, env=environment, stdin=null, stdout=pipe, stderr=pipe)

    def processes(self) -> list[int]:
        wanted = f"{MARK}={self.mark}\0".encode()
        found = []
        for process in all_processes():
            with contextlib.suppress(OSError):
                if process.state != "Z" and wanted in Path(f"/proc/{process.pid}/environ").read_bytes():
                    found.append(process.pid)
        return found

    def left(self, run: Run, *, told: bool) -> Iterator[str]:
        """Whatever should not be there. ``told``: the run printed a result, which names its outputs."""
        end = time.monotonic() + GONE_S
        while self.processes() and time.monotonic() < end:
            time.sleep(0.02)
        yield from (f"process {pid}" for pid in self.processes())
        yield from (f"temporary {one.name}" for one in self.temporary.iterdir())
        here = {one.name for one in self.here.iterdir()} - self.given
        yield from (f"file {name}" for name in here - set(run.outputs))
        yield from (f"not whole: {name}" for name in here & set(run.outputs) if not self._is_whole(name))
        for one in self.state.rglob("*"):
            if one.name.endswith(".tmp"):
                yield f"unfinished {one}"
            if one.is_dir() and one.parent.parent.name == "replay" and not told:
                yield f"folder of attempts that no report names: {one}"
            if one.suffix == ".json" and one.parent.name == "last":
                json.loads(one.read_bytes())

    def _is_whole(self, name: str) -> bool:
        data = (self.here / name).read_bytes()
        ends = {"md": b"\n", "html": b"</html>\n", "json": b"}\n", "csv": b"\n", "log": b"\n"}
        return data.endswith(ends[name.rpartition(".")[2]]) or not data


@cache
def life_s(name: str, folder: Path) -> float:
    """How long a run takes that nobody disturbs, and that it leaves nothing."""
    place = Place(folder / f"life-{name}", f"{os.getpid()}-{name}")
    began = time.monotonic()
    child = place.start(RUNS[name])
    out, err = child.communicate(timeout=120)
    seconds = time.monotonic() - began
    assert child.returncode in {0, 1, 5}, err
    assert not list(place.left(RUNS[name], told=bool(out)))
    assert {one.name for one in place.here.iterdir()} >= set(RUNS[name].outputs) - {"plan.json"}
    return seconds


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("signals")


def leaves(folder: Path, name: str, seed: int) -> list[str]:
    """What a run leaves that gets a signal at a random moment of its life."""
    chance = random.Random(f"{name} {seed}")  # noqa: S311 (no secret)
    number, after_s = NUMBERS[seed % 3], chance.random() * life_s(name, folder)
    place = Place(folder / f"{name}-{seed}", f"{os.getpid()}-{name}-{seed}")
    child = place.start(RUNS[name])
    time.sleep(after_s)
    child.send_signal(number)
    try:
        out, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        return [f"{name}, {number.name} after {after_s:.3f} s: it does not end"]
    ended = f"{name}, {number.name} after {after_s:.3f} s, seed {seed}, exit code {child.returncode}"
    told = bool(out) and name.startswith("replay")
    left = [f"{ended}: {one}" for one in place.left(RUNS[name], told=told)]
    if b"bug of ours" in err:
        left.append(f"{ended}: {err.decode(errors='replace')}")
    if not left:
        shutil.rmtree(place.here.parent)
    return left


@pytest.mark.parametrize("name", RUNS)
def test_a_signal_at_any_moment_leaves_nothing(name: str, folder: Path) -> None:
    """Eight a kind here; ``-m heavy`` makes two hundred."""
    assert [one for seed in range(8) for one in leaves(folder, name, seed)] == []


@pytest.mark.heavy
def test_two_hundred_signals_leave_nothing(folder: Path) -> None:
    names = list(RUNS)
    left = [one for seed in range(100, 300) for one in leaves(folder, names[seed % len(names)], seed)]
    assert left == [], "\n".join(left)

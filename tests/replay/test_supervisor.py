from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analyzer.replay.supervisor import ChildOutcome
from tests.replay import children

MIB = 1 << 20
FAILURES: dict[str, tuple[str, dict[str, float]]] = {
    "exception": (children.RAISES, {}),
    "exit 3": (children.EXITS_3, {}),
    "SIGSEGV": (children.SEGFAULTS, {}),
    "abort": (children.ABORTS, {}),
    "memory limit": (children.EATS_MEMORY, {"memory_limit_bytes": 200 * MIB}),
    "hang": (children.HANGS, {"deadline_s": 0.3}),
    "hang that ignores SIGTERM": (children.HANGS_STUBBORN, {"deadline_s": 0.3}),
    "hang with a grandchild that ignores SIGTERM": (children.GRANDCHILD, {"deadline_s": 0.5}),
    "an orphan that left session and environment": (children.ORPHAN, {}),
}


def as_expected(name: str, outcome: ChildOutcome) -> bool:
    return {
        "exception": outcome.exit_code == 1,
        "exit 3": outcome.exit_code == 3,
        "SIGSEGV": outcome.signal == signal.SIGSEGV,
        "abort": outcome.signal == signal.SIGABRT,
        "memory limit": outcome.killed_for == "memory",
        "an orphan that left session and environment": outcome.exit_code == 0,
    }.get(name, outcome.timed_out)


def test_a_healthy_attempt_passes_after_fifty_forced_failures_and_no_process_is_left(tmp_path: Path) -> None:
    """CPU acceptance of issue C: nothing of an attempt reaches the next one."""
    before = children.left_behind()
    names = list(FAILURES)
    for turn in range(50):
        name = names[turn % len(names)]
        code, settings = FAILURES[name]
        outcome = children.run(children.python(code), tmp_path, **settings)
        assert as_expected(name, outcome), (turn, name, outcome)
        assert outcome.left_over == ()
        assert children.left_behind() == before, (turn, name)
    healthy = children.run(children.python(children.HEALTHY), tmp_path)
    assert (healthy.exit_code, healthy.killed_for) == (0, None)
    assert (tmp_path / "output").read_text() == "fine\n"


@pytest.mark.parametrize("code", [children.HANGS, children.HANGS_STUBBORN, children.GRANDCHILD])
def test_a_hang_is_dead_within_a_second_of_its_deadline(code: str, tmp_path: Path) -> None:
    began = time.monotonic()
    outcome = children.run(children.python(code), tmp_path, deadline_s=1.0, grace_s=0.2)
    assert time.monotonic() - began < 2.0
    assert outcome.timed_out
    assert outcome.duration_s < 2.0


def test_a_command_that_does_not_exist_is_told_and_not_raised(tmp_path: Path) -> None:
    outcome = children.run(["/no/such/program"], tmp_path)
    assert outcome.start_error is not None
    assert "/no/such/program" in outcome.start_error
    assert outcome.exit_code is None


def test_output_of_both_streams_goes_to_the_file(tmp_path: Path) -> None:
    both = "import sys; print('out', flush=True); print('err', file=sys.stderr)"
    children.run(children.python(both), tmp_path)
    assert (tmp_path / "output").read_text() == "out\nerr\n"


def test_a_child_that_outlives_its_own_stop_is_ended(tmp_path: Path) -> None:
    """A worker ends the run on purpose while the server above it goes on waiting."""
    code = (
        "import os, time; fd = os.open(os.environ['JOURNAL'], os.O_WRONLY | os.O_CREAT)\n"
        'os.write(fd, b\'{"event": "stopped", "pid": 1, "time_ns": 1}\\n\'); time.sleep(600)'
    )
    outcome = children.run(children.python(code), tmp_path, env={"JOURNAL": str(tmp_path / "journal")})
    assert outcome.stopped
    assert outcome.killed_for == "stopped"
    assert outcome.duration_s < 5.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_parent_leaves_no_process_and_tells_what_it_has(
    number: signal.Signals, tmp_path: Path
) -> None:
    code = (
        "from pathlib import Path; from tests.replay import children\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "outcome = children.run(children.python(children.GRANDCHILD), folder, deadline_s=60)\n"
        "print(outcome.killed_for, children.left_behind(), flush=True)"
    )
    root = Path(__file__).parents[2]
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root)
    end = time.monotonic() + 20
    while not (tmp_path / "output").exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(parent.pid, number)
    told, _ = parent.communicate(timeout=20)
    assert told == "interrupted []\n"

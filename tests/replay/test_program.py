"""Program replay with real children that need no framework."""

from __future__ import annotations

import os
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from analyzer.errors import ReplaySetupError
from analyzer.replay.attempts import ReplayOptions
from analyzer.replay.program import replay_program
from analyzer.replay.report import ReplayReport
from tests.replay import children
from tests.replay.results import log

MIB = 1 << 20


def replay(code: str, folder: Path, **settings: float) -> ReplayReport:
    options = ReplayOptions(folder=folder, **{"deadline_s": 20.0, "grace_s": 0.2, **settings})  # type: ignore[arg-type]
    return replay_program(log(), children.python(code), options)


@pytest.mark.parametrize(
    ("code", "settings", "verdict"),
    [
        (children.HEALTHY, {}, "not_reproduced"),
        (children.RAISES, {}, "setup_failed"),
        ("import no_such_module_anywhere", {}, "setup_failed"),
        (children.SEGFAULTS, {}, "not_replayable"),
        (children.ABORTS, {}, "not_replayable"),
        (children.EATS_MEMORY, {"memory_limit_bytes": 200 * MIB}, "out_of_memory"),
        (children.HANGS, {"deadline_s": 0.5}, "hang"),
        (children.GRANDCHILD, {"deadline_s": 0.5}, "hang"),
    ],
)
def test_each_way_to_end_has_its_verdict(
    code: str, settings: dict[str, float], verdict: str, tmp_path: Path
) -> None:
    report = replay(code, tmp_path, **settings)
    assert report.verdict == verdict, report.statement
    assert report.statement
    assert children.left_behind() == []


def test_a_program_that_cannot_be_started_is_setup_failed_with_its_name(tmp_path: Path) -> None:
    report = replay_program(log(), ["/no/such/server"], ReplayOptions(folder=tmp_path))
    assert report.verdict == "setup_failed"
    assert "/no/such/server" in report.statement


def test_a_program_that_runs_no_op_is_not_called_sound(tmp_path: Path) -> None:
    report = replay_program(log(), ["true"], ReplayOptions(folder=tmp_path))
    assert report.verdict == "not_reproduced"
    assert "whether the program got that far is not known" in report.statement
    assert report.rules_out == ()


def test_a_hang_without_a_place_is_waited_out_twice(tmp_path: Path) -> None:
    report = replay(children.HANGS, tmp_path, deadline_s=0.5)
    assert [one.outcome for one in report.attempts] == ["hang", "hang"]


def test_no_command_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(ReplaySetupError, match=r"-- python serve\.py"):
        replay_program(log(), [], ReplayOptions(folder=tmp_path))


def test_the_record_of_an_attempt_has_what_ran_and_what_it_printed(tmp_path: Path) -> None:
    report = replay(children.HEALTHY, tmp_path)
    first = report.attempts[0]
    assert first.command == children.python(children.HEALTHY)
    assert first.switches["CUDA_LAUNCH_BLOCKING"] == "1"
    assert "device-sync-mode" in first.switches["MODULAR_DEBUG"]
    assert Path(first.output).read_text() == "fine\n"
    assert 0 < first.duration_s < 20


def test_the_users_own_sitecustomize_still_runs_and_no_module_is_shadowed(tmp_path: Path) -> None:
    """The hook stands in front of ``sitecustomize`` and has modules named like anybody's: journal, watch."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "sitecustomize.py").write_text("import builtins; builtins.MINE = 'chained'")
    (mine / "journal.py").write_text("NAME = 'the user module'")
    code = "import journal, sitecustomize; print(MINE, journal.NAME, sitecustomize.__file__)"
    command = ["env", f"PYTHONPATH={mine}", *children.python(code)]
    with_hook = textwrap.dedent(
        f"""
        import os, sys
        os.environ['PYTHONPATH'] += os.pathsep + {str(mine)!r}
        os.execv(sys.executable, [sys.executable, '-c', {code!r}])
        """
    )
    report = replay(with_hook, tmp_path / "replay")
    printed = Path(report.attempts[0].output).read_text()
    assert printed == subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_without_the_variable_the_hook_does_nothing(tmp_path: Path) -> None:
    hooks = Path(__file__).parents[2] / "analyzer" / "replay" / "hooks"
    code = "import sys; print([type(one).__name__ for one in sys.meta_path if 'AfterImport' in repr(one)])"
    env = {**os.environ, "PYTHONPATH": str(hooks)}
    done = subprocess.run(children.python(code), capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "[]\n"


def test_ctrl_c_keeps_the_attempts_so_far(tmp_path: Path) -> None:
    code = f"""
        import signal, sys
        from pathlib import Path
        from tests.replay import children
        from tests.replay.test_program import replay
        report = replay(children.HANGS, Path({str(tmp_path)!r}), deadline_s=60)
        print(report.verdict, report.interrupted, [one.outcome for one in report.attempts], flush=True)
        """
    parent = subprocess.Popen(
        children.python(textwrap.dedent(code)),
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    end = time.monotonic() + 20
    while not (tmp_path / "1-blocking.log").exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    parent.send_signal(2)
    told, _ = parent.communicate(timeout=20)
    assert told == "None True ['interrupted']\n"
    assert parent.returncode == 0

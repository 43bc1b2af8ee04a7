"""The options of an op replay on the command line, without a framework."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.cli.replay_options import ReplayWanted
from analyzer.errors import UsageError
from analyzer.grammar import data_path
from analyzer.replay.ops.files import with_absolute_files
from analyzer.replay.ops.user_file import names_of_functions
from analyzer.replay.plan import read_plan, write_plan
from analyzer.verdict.confidence import with_replay
from tests.replay import plans
from tests.replay.plans import failing_log, replay_words, words

ROOT = Path(__file__).parents[2]
PAGED = data_path("sample_logs") / "max_ops/paged_async/input.log.gz"
NO_OPS = data_path("sample_logs") / "max_errors/oob_no_oplog/input.log"


def cli(folder: Path, *arguments: str, data: bytes | None = None) -> tuple[int, str, str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "-m", "analyzer", *arguments]
    done = subprocess.run(
        command, input=data, capture_output=True, check=False, cwd=folder, env=env, timeout=120
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--plan", "p.json"], "--plan is for --replay"),
        (["--repro", "r.py"], "--repro is for --replay"),
        (["--replay", "--device", "cpu", "--", "python", "serve.py"], "give one of them"),
        (["--replay", "--ops", "none.py"], "--ops none.py: no such file"),
        (["--replay", "--replay-inputs", "none"], "--replay-inputs none: no such file"),
        (["--replay", "--custom-extensions", "none.so"], "--custom-extensions none.so: no such file"),
        (["--replay", "--device", "bogus"], "--device 'bogus': give cpu, or a device with its number"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(arguments: list[str], told: str, tmp_path: Path) -> None:
    code, out, err = cli(tmp_path, str(NO_OPS), *arguments)
    assert (code, out) == (2, "")
    assert told in err


def test_a_log_without_ops_says_exactly_what_to_give(tmp_path: Path) -> None:
    code, out, err = cli(tmp_path, str(NO_OPS), "--replay", "--save-plan", "plan.json")
    assert (code, out) == (5, "")
    for part in (
        "nothing to replay",
        "-- python serve.py",
        "trace-analyze record",
        "--replay-inputs",
        "--ir",
    ):
        assert part in err
    assert read_plan(tmp_path / "plan.json").runnable() == ()  # written all the same


def test_an_interpreter_without_the_framework_is_exit_5_with_the_result(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    write_plan(words("aten::add", "aten::add"), plan)
    bare = tmp_path / "bare"
    bare.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S -c 'raise ImportError(\"no torch\")'\n")
    bare.chmod(0o755)
    code, out, err = cli(
        tmp_path, str(PAGED), "--replay", "--plan", str(plan), "--python", str(bare), "--format", "json"
    )
    assert code == 5, err
    replay = json.loads(out)["replay"]
    assert replay["verdict"] == "setup_failed"
    assert str(bare) in replay["statement"]
    assert replay["plan"] == str(plan)


def test_replay_alone_after_standard_input_says_what_to_do(tmp_path: Path) -> None:
    assert cli(tmp_path, "-", data=NO_OPS.read_bytes())[0] == 0
    code, _, err = cli(tmp_path, "--replay")
    assert code == 5
    assert "read standard input" in err


def test_replay_alone_writes_no_reports(tmp_path: Path) -> None:
    cli(tmp_path, str(NO_OPS))
    code, _, err = cli(tmp_path, "--replay", "--report", "r.md")
    assert code == 2
    assert "give the log" in err


def test_files_of_a_plan_are_beside_it(tmp_path: Path) -> None:
    plan = words("sound")
    inside = plans.tensor(file="inputs.safetensors")
    argument = plan.ops[0].arguments[0]
    made = plan.ops[0].arguments[0].__class__(name=argument.name, tensors=(inside, None))
    op = plan.ops[0].__class__(number=0, name="x", executor="torch", call="x", arguments=(made,))
    moved = with_absolute_files(plan.__class__(ops=(op,)), tmp_path)
    (tensor,) = moved.ops[0].tensors()
    assert tensor.file == str(tmp_path / "inputs.safetensors")


def test_names_of_the_users_functions_are_read_without_executing_the_file(tmp_path: Path) -> None:
    file = tmp_path / "my_ops.py"
    file.write_text(
        "def lookup(x): ...\nOPS = {'custom__paged': lookup}\nOPS2: dict = {'no': 1}\nraise SystemExit\n"
    )
    assert names_of_functions(file) == {"lookup", "custom__paged"}
    file.write_text("def (")
    with pytest.raises(UsageError, match=r"my_ops\.py"):
        names_of_functions(file)


def test_options_of_an_op_replay_are_told_apart_from_the_others(tmp_path: Path) -> None:
    plain = ReplayWanted(program=(), deadline_s=1.0, quiet=True)
    assert plain.of_ops() == []
    plain.check(replay=False)
    assert ReplayWanted(program=(), deadline_s=1.0, quiet=True, device="cpu").of_ops() == ["--device"]


def test_a_confirmed_op_raises_the_confidence_of_the_result(tmp_path: Path) -> None:
    log = failing_log()
    result = with_replay(log, replay_words(words("sound", "bad"), tmp_path, log))
    assert result.conclusion.confidence == "confirmed"
    other = failing_log("RuntimeError: shapes")
    again = with_replay(other, replay_words(words("bad"), tmp_path, other))
    assert again.conclusion == other.conclusion


def test_the_log_is_never_written_over(tmp_path: Path) -> None:
    """The evidence is there once: no output may be an input, by whatever name it is given."""
    log = tmp_path / "serve.log"
    log.write_bytes(NO_OPS.read_bytes())
    planned = ["--replay", "--save-plan", "serve.log"]
    outputs = (["--report", "./serve.log"], ["--timeline-csv", "serve.log"], planned)
    for option in outputs:
        code, _, err = cli(tmp_path, "serve.log", *option)
        assert (code, "is read by this call" in err) == (2, True), (option, err)
    assert log.read_bytes() == NO_OPS.read_bytes()


def test_two_outputs_need_two_files(tmp_path: Path) -> None:
    (tmp_path / "serve.log").write_bytes(NO_OPS.read_bytes())
    code, _, err = cli(tmp_path, "serve.log", "--report", "a.md", "--timeline-csv", "./a.md")
    assert (code, "is given for two outputs" in err) == (2, True), err
    assert not (tmp_path / "a.md").exists()


def test_a_program_of_the_users_is_not_replaced_by_a_repro(tmp_path: Path) -> None:
    serve = tmp_path / "serve.py"
    serve.write_text("import torch\n")
    code, _, err = cli(tmp_path, str(NO_OPS), "--replay", "--repro", "serve.py")
    assert (code, "did not write" in err) == (2, True)
    assert serve.read_text() == "import torch\n"
    serve.write_text('"""aten::mm fails\n\nWritten by trace-analyze from x.log.\n"""\n')
    ReplayWanted(program=(), deadline_s=1.0, quiet=True, repro=serve).spare_files()


def test_a_given_plan_does_not_raise_the_confidence_of_the_log(tmp_path: Path) -> None:
    """It may have been edited, or be of another log: it confirms itself only."""
    log = failing_log()
    result = with_replay(log, replay_words(words("sound", "bad"), tmp_path, log), own=False)
    assert result.replay is not None
    assert result.replay.verdict == "confirmed"
    assert result.conclusion == log.conclusion

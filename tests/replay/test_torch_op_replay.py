"""Op replay with torch on the CPU: from a log to the verdict, and the program that fails alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from analyzer.pipeline import Options, open_analysis
from analyzer.replay.op_replay import replay_ops
from analyzer.replay.ops.options import OpReplayOptions
from analyzer.replay.plan import Plan, PlanArgument, PlanOp, read_plan
from analyzer.replay.planning import build_plan
from analyzer.replay.report import ReplayReport
from tests.replay import children
from tests.replay.plans import failing_log, tensor

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
WINDOWS, IN_CHILD = 100, 50  # windows of the program of sound lookups


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


def window_of(size: int, bad: int) -> Plan:
    """Lookups of all kinds, each made of the one before; op ``bad`` is an embedding with index 100 of 100."""
    kinds = ("aten::embedding", "aten::index_select", "aten::gather", "aten::topk", "aten::softmax")
    ops = [_op(number, kinds[number % len(kinds)], number - 1 if number else None) for number in range(size)]
    indices = tensor((4,), values=(3, 0, 100, 7), extent=100)
    arguments = (PlanArgument(name="weight", tensor=_table()), PlanArgument(name="indices", tensor=indices))
    ops[bad] = PlanOp(
        number=bad, name="aten::embedding", executor="torch", call="aten::embedding", arguments=arguments
    )
    return Plan(log="serve.log", ops=tuple(ops))


def _table(from_op: int | None = None) -> Any:
    return tensor((100, 16), "float32", fidelity="made", from_op=from_op)


def _op(number: int, call: str, maker: int | None) -> PlanOp:
    rows = tensor((5,), fidelity="made", extent=100)
    given: dict[str, tuple[PlanArgument, ...]] = {
        "aten::embedding": (
            PlanArgument(name="weight", tensor=_table(maker)),
            PlanArgument(name="indices", tensor=rows),
        ),
        "aten::index_select": (
            PlanArgument(name="self", tensor=_table(maker)),
            PlanArgument(name="dim", value=0),
            PlanArgument(name="index", tensor=rows),
        ),
        "aten::gather": (
            PlanArgument(name="self", tensor=_table(maker)),
            PlanArgument(name="dim", value=1),
            PlanArgument(name="index", tensor=tensor((100, 3), fidelity="made", extent=16)),
        ),
        "aten::topk": (PlanArgument(name="self", tensor=_table(maker)), PlanArgument(name="k", value=4)),
        "aten::softmax": (
            PlanArgument(name="self", tensor=_table(maker)),
            PlanArgument(name="dim", value=-1),
        ),
    }
    overload = "int" if call == "aten::softmax" else None
    return PlanOp(
        number=number, name=call, executor="torch", call=call, overload=overload, arguments=given[call]
    )


def test_one_bad_op_of_200_shrinks_to_itself_and_its_program_fails_alike(tmp_path: Path) -> None:
    """Acceptance of issue C: at most 40 attempts."""
    repro = tmp_path / "repro.py"
    options = OpReplayOptions(folder=tmp_path / "replay", repro=repro, deadline_s=120.0)
    report = replay_ops(failing_log(), window_of(200, 150), options)
    assert report.verdict == "confirmed", report.statement
    assert report.shrunk_to == (150,)
    assert len(report.attempts) <= 40
    assert report.repro_verified, report.statement
    ran = subprocess.run([sys.executable, str(repro)], capture_output=True, text=True, check=False, cwd="/")
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == "IndexError: index out of range in self"
    text = repro.read_text()
    assert "analyzer" not in text
    assert "torch.tensor([3, 0, 100, 7], dtype=torch.int64" in text
    assert [one.outcome for one in report.ops[:151]] == ["sound"] * 150 + ["failed"]
    assert all(one.device_ns for one in report.ops[:150])
    assert children.left_behind() == []


def healthy(folder: Path, windows: int) -> Iterator[ReplayReport]:
    """Record sound windows with types alone, take each of them for the suspicious one, replay."""
    log = folder / "serve.log"
    program = [sys.executable, str(PROGRAMS / "healthy_windows.py"), str(log), str(windows)]
    subprocess.run(program, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=200)
    lines = len(log.read_bytes().splitlines())
    with log.open("a") as file:
        file.write("RuntimeError: CUDA error: an illegal memory access was encountered\n")
    with open_analysis([str(log)], Options(window=(1, lines))) as analysis:
        result, plan = analysis.result, build_plan(analysis)
    assert len(plan.ops) > 30 * windows
    assert "recorded" not in {op.fidelity() for op in plan.ops if any(one.extent for one in op.tensors())}
    size = len(plan.ops) * IN_CHILD // windows
    for first in range(0, len(plan.ops), size):
        part = [
            msgspec.structs.replace(
                op, number=number, arguments=tuple(_moved(one, first) for one in op.arguments)
            )
            for number, op in enumerate(plan.ops[first : first + size])
        ]
        options = OpReplayOptions(folder=folder / f"replay-{first}", deadline_s=300.0)
        yield replay_ops(result, msgspec.structs.replace(plan, ops=tuple(part)), options)


def _moved(argument: PlanArgument, first: int) -> PlanArgument:
    """The same argument in a plan that begins with op ``first``."""

    def moved(one: Any) -> Any:
        if one is None or one.from_op is None:
            return one
        at = one.from_op - first
        return msgspec.structs.replace(one, from_op=at if at >= 0 else None)

    several = argument.tensors
    return msgspec.structs.replace(
        argument,
        tensor=moved(argument.tensor),
        tensors=None if several is None else tuple(map(moved, several)),
    )


def test_100_healthy_windows_of_lookups_with_types_only_confirm_nothing(tmp_path: Path) -> None:
    """Acceptance of issue C."""
    executed = total = 0
    for report in healthy(tmp_path, WINDOWS):
        assert report.verdict == "not_reproduced", report.statement
        assert report.op is None
        executed += sum(one.outcome == "sound" for one in report.ops)
        total += len(report.ops)
    assert executed > 0.95 * total


def cli(folder: Path, *arguments: str) -> tuple[int, str, str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "-m", "analyzer", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=200
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recorded run of a program whose step 7 indexes out of range."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("recorded")
    program = [sys.executable, str(PROGRAMS / "torch_steps.py"), "7", "10"]
    code, _, told = cli(folder, "record", "--for", "torch", "-o", "serve.log", "--quiet", "--", *program)
    assert code == 1, told
    return folder


def test_a_recorded_failure_is_confirmed_from_the_log_alone(recorded: Path) -> None:
    """Recorded index values fail, valid ones pass, and the program written of it fails alike."""
    code, out, told = cli(
        recorded,
        "serve.log",
        "--replay",
        "--repro",
        "repro.py",
        "--save-plan",
        "plan.json",
        "--format",
        "json",
    )
    assert code == 0, told
    replay = json.loads(out)["replay"]
    assert replay["verdict"] == "confirmed", replay["statement"]
    assert (replay["kind"], replay["op"]["name"], replay["fidelity"]) == (
        "ops",
        "aten::embedding",
        "recorded",
    )
    assert replay["op"]["source"]["file"].endswith("torch_steps.py")
    assert "input 1: values from 0 to 100" in replay["op"]["notes"]
    assert "with valid indices, passed" in replay["control"]
    assert replay["repro_verified"]
    told = "nputs: recorded values of indices, weight made, the values of the crash are not known"
    assert told in replay["statement"]
    assert told in (recorded / "repro.py").read_text()


def test_the_plan_can_be_edited_and_replayed(recorded: Path) -> None:
    cli(recorded, "serve.log", "--replay", "--save-plan", "plan.json")
    plan = read_plan(recorded / "plan.json")
    text = (recorded / "plan.json").read_text()
    edited = text.replace('"fidelity": "recorded"', '"fidelity": "made"')
    assert edited != text
    (recorded / "edited.json").write_text(edited)
    code, out, told = cli(recorded, "serve.log", "--replay", "--plan", "edited.json", "--format", "json")
    assert code == 0, told
    replay = json.loads(out)["replay"]
    assert replay["verdict"] == "not_reproduced"
    assert len(replay["ops"]) == len(plan.ops)


def test_replay_alone_opens_the_last_log_again_and_says_when_it_is_gone(recorded: Path) -> None:
    cli(recorded, "serve.log")
    code, out, told = cli(recorded, "--replay")
    assert code == 0, told
    assert "confirmed: aten::embedding" in out
    assert "serve.log, analysed here last" in told
    (recorded / "serve.log").rename(recorded / "moved.log")
    code, _, told = cli(recorded, "--replay")
    (recorded / "moved.log").rename(recorded / "serve.log")
    assert code == 5
    assert "serve.log: analysed here last, and gone since" in told


def test_the_timeline_shows_replayed_times_apart_from_those_of_the_log(recorded: Path) -> None:
    code, out, told = cli(recorded, "serve.log", "--replay", "--timeline")
    assert code == 0, told
    assert "times are host times" in out
    assert "not the times of the log" in out

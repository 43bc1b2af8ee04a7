"""The rules of an op replay, with real children that only play the ops."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from analyzer.replay.ops.fitting import is_accused
from analyzer.replay.plan import Plan, PlanArgument, PlanOp
from analyzer.replay.report import BlamedOp
from analyzer.replay.supervisor import ChildOutcome, run_child
from analyzer.schema import OpRef, Suspect
from tests.replay import children, plans
from tests.replay.plans import failing_log, replay_words, words
from tests.replay.results import log, suspect

ACCESS = "RuntimeError: CUDA error: an illegal memory access was encountered"


def test_an_op_that_fails_twice_and_passes_with_valid_indices_is_confirmed(tmp_path: Path) -> None:
    report = replay_words(words("sound", "bad", "sound"), tmp_path)
    assert report.verdict == "confirmed", report.statement
    assert report.kind == "ops"
    assert (report.op and report.op.number, report.op and report.op.name) == (1, "op1")
    assert report.control == "attempt 3, the same op with valid indices, passed"
    assert report.shrunk_to == (1,)
    assert report.fidelity == "recorded"
    assert [one.rung for one in report.attempts] == ["blocking", "shrink", "control"]
    assert [one.outcome for one in report.ops] == ["sound", "failed", "not_run"]
    assert children.left_behind() == []


def test_an_op_that_fails_whatever_its_values_are_needs_the_window_without_it_as_control(
    tmp_path: Path,
) -> None:
    report = replay_words(
        words("sound", "dies", "sound"), tmp_path, failing_log("Segmentation fault", "host_segfault")
    )
    assert report.verdict == "confirmed", report.statement
    assert report.control == "attempt 4, the window without the op, passed"


def test_a_machine_on_which_everything_fails_confirms_nothing(tmp_path: Path) -> None:
    report = replay_words(words("dies", "dies"), tmp_path, failing_log("Segmentation fault", "host_segfault"))
    assert report.verdict == "not_replayable"
    assert "no control passed" in report.statement


def test_a_host_check_that_refuses_valid_values_too_is_our_call_and_not_the_fault(tmp_path: Path) -> None:
    log_ = failing_log("IndexError: another index text")
    report = replay_words(words("sound", "broken"), tmp_path, log_)
    assert report.verdict == "not_replayable"
    assert "with valid inputs too" in report.statement


def test_the_messenger_shrinks_to_itself_and_what_it_needs(tmp_path: Path) -> None:
    calls = ["sound"] * 60
    calls[50] = "needs:7+31"
    report = replay_words(words(*calls), tmp_path)
    assert report.verdict == "confirmed", report.statement
    assert report.shrunk_to == (7, 31, 50)
    assert len(report.attempts) <= 40


def test_a_failure_that_does_not_come_again_is_not_confirmed(tmp_path: Path) -> None:
    report = replay_words(words("sound", "once"), tmp_path)
    assert report.verdict == "not_reproduced"
    assert "not often enough" in report.statement


def test_nothing_fails_and_nobody_is_called_innocent(tmp_path: Path) -> None:
    report = replay_words(words("sound", "sound", fidelity="made"), tmp_path)
    assert report.verdict == "not_reproduced"
    assert "does not show any op innocent" in report.statement
    assert "only the code with these shapes was tried" in report.statement
    assert [one.outcome for one in report.attempts] == ["passed", "passed"]
    assert report.skipped == ("uncached, coredump, sanitizer: the ops used no device",)
    assert [one.device_ns for one in report.ops] == [1000, 2000]


@pytest.mark.parametrize("mistake", ["inputs", "call"])
def test_a_mistake_of_ours_is_left_out_and_counted_and_the_rest_goes_on(mistake: str, tmp_path: Path) -> None:
    report = replay_words(words("sound", mistake, "bad"), tmp_path)
    assert report.verdict == "confirmed", report.statement
    assert report.op is not None
    assert report.op.number == 2
    assert report.ops[1].outcome == "not_run"
    alone = replay_words(words("sound", mistake), tmp_path)
    assert alone.verdict == "not_reproduced"
    assert "1 left out (op1: " in alone.statement


@pytest.mark.parametrize("mistake", ["inputs", "call"])
def test_a_window_of_mistakes_of_ours_is_not_replayable(mistake: str, tmp_path: Path) -> None:
    report = replay_words(words(mistake, mistake), tmp_path)
    assert report.verdict == "not_replayable"
    assert "trace-analyze record" in report.statement


def test_made_indices_that_are_refused_confirm_nothing(tmp_path: Path) -> None:
    """They are valid by construction: a check that fails shows the construction wrong."""
    report = replay_words(words("sound", "broken", fidelity="made"), tmp_path)
    assert report.verdict == "not_reproduced"
    assert "the inputs made for it were refused" in report.statement


def test_another_failure_than_the_logs_confirms_nothing(tmp_path: Path) -> None:
    other = replay_words(words("bad"), tmp_path, failing_log("RuntimeError: shapes", "unknown"))
    assert other.verdict == "confirmed_other_op"
    assert "another failure than the log's: IndexError" in other.statement
    clean = replay_words(words("sound", "bad"), tmp_path, log())
    assert clean.verdict == "confirmed_other_op"
    assert "the log has no fault" in clean.statement


def test_an_op_that_fails_in_another_way_does_not_hide_the_one_that_fails_as_the_log_did(
    tmp_path: Path,
) -> None:
    access = failing_log(ACCESS, "illegal_address", 700)
    report = replay_words(words("sound", "other", "bad"), tmp_path, access)
    assert report.verdict == "confirmed", report.statement
    assert report.op is not None
    assert report.op.number == 2
    assert "another way than the log" in (report.ops[1].why_not or "") or report.ops[1].outcome == "failed"


@pytest.mark.parametrize(
    ("range_", "verdict"), [((0, 100), "confirmed"), ((-1, 5), "confirmed"), ((0, 99), "not_reproduced")]
)
def test_only_a_recorded_range_that_leaves_the_table_makes_a_refused_index_evidence(
    range_: tuple[int, int], verdict: str, tmp_path: Path
) -> None:
    index = plans.tensor(fidelity="statistics", low=range_[0], high=range_[1], extent=100)
    plan = words("sound", "bad")
    last = msgspec.structs.replace(plan.ops[1], arguments=(PlanArgument(name="index", tensor=index),))
    report = replay_words(Plan(ops=(plan.ops[0], last)), tmp_path)
    assert report.verdict == verdict, report.statement


def test_an_index_refused_on_the_cpu_fits_a_wild_read_on_a_device_and_it_is_said(tmp_path: Path) -> None:
    plan = words("sound", "bad", device="cuda:0")
    report = replay_words(plan, tmp_path, failing_log(ACCESS, "illegal_address", 700))
    assert report.verdict == "confirmed", report.statement
    assert "executed on the CPU, the log's op ran on cuda:0" in report.statement


def test_ops_of_a_device_that_ran_through_on_the_cpu_are_said_to(tmp_path: Path) -> None:
    report = replay_words(words("sound", "sound", fidelity="made", device="gpu:0"), tmp_path)
    assert report.verdict == "not_reproduced"
    assert "; executed on the CPU, the log's ops ran on gpu:0; " in report.statement
    asked = replay_words(words("sound", device="gpu:0"), tmp_path, device="cpu")
    assert "the log's op ran on gpu:0 (--device cpu was given)" in asked.statement
    used = replay_words(words("opens", device="gpu:0"), tmp_path)
    assert "on the CPU" not in used.statement


def test_an_op_that_the_log_does_not_suspect_is_another_op(tmp_path: Path) -> None:
    suspected = log(suspect("custom__gather", 99))
    named = msgspec.structs.replace(suspected, faults=failing_log().faults)
    report = replay_words(words("sound", "bad"), tmp_path, named)
    assert report.verdict == "confirmed_other_op"


def test_a_hang_names_the_op_and_costs_one_deadline(tmp_path: Path) -> None:
    report = replay_words(words("sound", "hangs"), tmp_path, deadline_s=1.5)
    assert report.verdict == "hang"
    assert report.op is not None
    assert report.op.number == 1
    assert len(report.attempts) == 1
    assert children.left_behind() == []


def test_a_plan_without_an_executable_op_says_for_each_why_and_starts_nothing(tmp_path: Path) -> None:
    plan = words("sound", "sound", why_not="its operands are not in the log")
    report = replay_words(plan, tmp_path)
    assert report.verdict == "not_replayable"
    assert "op0, op1: its operands are not in the log" in report.statement
    assert report.attempts == ()


def test_an_interpreter_without_torch_is_setup_failed_and_names_the_option(tmp_path: Path) -> None:
    skipped = replay_words(words("skipped", "skipped"), tmp_path)
    assert skipped.verdict == "setup_failed"
    assert "torch cannot be imported" in skipped.statement
    assert "--python" in skipped.statement
    missing = replay_words(words("sound"), tmp_path, python="/no/such/python")
    assert missing.verdict == "setup_failed"
    assert "/no/such/python" in missing.statement
    broken = replay_words(words("sound"), tmp_path, worker=("-c", "import no_such_module_anywhere"))
    assert broken.verdict == "setup_failed"
    assert "no_such_module_anywhere" in broken.statement


def test_children_import_this_package_and_none_of_its_neighbours(tmp_path: Path) -> None:
    replay_words(words("sound"), tmp_path)
    (package,) = (tmp_path / "import").iterdir()
    assert package.resolve() == Path(plans.__file__).resolve().parents[2] / "analyzer"


def test_results_of_earlier_ops_are_part_of_the_smallest_list_unless_recorded(tmp_path: Path) -> None:
    plan = words("sound", "sound", "bad")
    fixed = PlanArgument(name="index", tensor=plans.tensor())
    for fidelity, smallest in (("recorded", (2,)), ("made", (0, 2))):
        made_of = plans.tensor(dtype="float32", fidelity=fidelity, from_op=0)  # type: ignore[arg-type]
        arguments = (fixed, PlanArgument(name="x", tensor=made_of))
        last = msgspec.structs.replace(plan.ops[2], arguments=arguments)
        report = replay_words(Plan(ops=(*plan.ops[:2], last)), tmp_path)
        assert report.shrunk_to == smallest, report.statement


def test_where_blocking_does_not_reproduce_the_ladder_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analyzer.replay.op_replay.has_device", lambda: True)
    monkeypatch.setattr("analyzer.replay.op_replay.shutil.which", lambda _name: None)
    access = failing_log(ACCESS, "illegal_address", 700)
    report = replay_words(words("sound", "coredump"), tmp_path, access)
    rungs = [one.rung for one in report.attempts]
    assert rungs[:4] == ["blocking", "blocking", "uncached", "coredump"]
    assert report.verdict == "confirmed", report.statement
    assert report.attempts[0].switches["CUDA_LAUNCH_BLOCKING"] == "1"
    assert "CUDA_LAUNCH_BLOCKING" not in report.attempts[3].switches
    plan = words("sound", "coredump")
    sound = msgspec.structs.replace(plan, ops=(plan.ops[0], msgspec.structs.replace(plan.ops[1], name="x")))
    nothing = replay_words(sound, tmp_path, access, ladder=False)
    assert [one.rung for one in nothing.attempts] == ["blocking", "blocking"]


def test_a_device_that_was_opened_was_used_though_the_host_keeps_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MAX has no events: its ops are timed by the host's clock on an accelerator too."""
    monkeypatch.setattr("analyzer.replay.op_replay.has_device", lambda: True)
    monkeypatch.setattr("analyzer.replay.op_replay.shutil.which", lambda _name: None)
    report = replay_words(words("sound", "opens"), tmp_path)
    assert [one.used_device for one in report.attempts] == [True] * len(report.attempts)
    assert "uncached" in [one.rung for one in report.attempts]
    assert "no attempt used the device" not in report.rules_out


def test_ops_of_max_are_executed_by_torch_where_max_is_missing_and_it_is_said(tmp_path: Path) -> None:
    plan = words("sound", "sound", "custom::paged_lookup")
    plan = msgspec.structs.replace(
        plan, ops=tuple(msgspec.structs.replace(op, executor="max") for op in plan.ops)
    )
    report = replay_words(plan, tmp_path)
    assert report.verdict == "not_reproduced", report.statement
    assert [one.outcome for one in report.ops] == ["sound", "sound", "not_run"]
    assert "in place of MAX's" in (report.ops[0].stand_in or "")
    assert "2 of them by a stand-in: torch's kernel in place of MAX's" in report.statement
    assert "max cannot be imported" in (report.ops[2].why_not or "")


def test_ctrl_c_keeps_the_attempts_so_far(tmp_path: Path) -> None:
    code = f"""
        from pathlib import Path
        from tests.replay.plans import replay_words, words
        report = replay_words(words("sound", "hangs"), Path({str(tmp_path)!r}), deadline_s=60)
        print(report.verdict, report.interrupted, [one.outcome for one in report.attempts], flush=True)
        """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ},
    )
    end = time.monotonic() + 20
    while not (tmp_path / "1-blocking.journal").exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    parent.send_signal(2)
    told, _ = parent.communicate(timeout=20)
    assert told == "None True ['interrupted']\n"


def test_ctrl_c_while_the_program_is_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(command: list[str], **settings: Any) -> ChildOutcome:
        child = run_child(command, **settings)
        return msgspec.structs.replace(child, killed_for="interrupted")

    monkeypatch.setattr("analyzer.replay.repro.write.run_child", stopped)
    report = replay_words(words("sound", "bad"), tmp_path / "replay", repro=tmp_path / "repro.py")
    assert (report.verdict, report.interrupted, report.repro) == ("confirmed", True, None)


def test_the_rank_of_another_logs_plan_accuses_nobody() -> None:
    """A plan can be edited, or be of another log: a rank counts with name and line of the suspect only."""
    mm = OpRef(name="aten::mm", id=3, process="", input=0, line=40)
    accused = Suspect(rank=1, op=mm, weight=1.0, share=1.0, reasons=[], source=[])
    log = msgspec.structs.replace(failing_log(), suspects=[accused])
    other = PlanOp(number=0, name="aten::gather", executor="torch", call="aten::gather", suspect=1, line=12)
    own = PlanOp(number=0, name="aten::mm", executor="torch", call="aten::mm", suspect=1, line=40)
    for op, expected in ((other, False), (own, True)):
        assert is_accused(op, BlamedOp(name=op.name, kind="op", exact=True), log) is expected

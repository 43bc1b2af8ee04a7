"""The rules of design.md 5, without children."""

from __future__ import annotations

import msgspec
import pytest

from analyzer.replay.report import ReplayAttempt
from analyzer.replay.verdict import decide
from tests.replay.results import attempt, blamed, log, suspect

SOUND_CONTROL = attempt("passed", rung="control", stopped=True)


def test_confirmed_needs_two_failures_at_the_op_and_a_control_that_passes() -> None:
    op = blamed()
    decision = decide([attempt("failed", op), attempt("failed", op, sound_before=True)], log())
    assert decision.verdict == "confirmed"
    assert decision.op == op
    assert decision.control
    assert decide([attempt("failed", op), attempt("failed", op), SOUND_CONTROL], log()).verdict == "confirmed"


@pytest.mark.parametrize(
    "attempts",
    [
        [attempt("failed", blamed(), sound_before=True)],
        [attempt("failed", blamed()), attempt("failed", blamed())],
        [attempt("failed", blamed(line=7), sound_before=True), attempt("failed", blamed(line=8))],
        [attempt("failed", blamed(exact=False)), attempt("failed", blamed(exact=False)), SOUND_CONTROL],
        [attempt("failed", blamed(), rung="locate"), attempt("failed", blamed()), SOUND_CONTROL],
    ],
    ids=["one failure", "no control", "two places", "late places", "one of two only located"],
)
def test_less_than_that_is_never_confirmed(attempts: list[ReplayAttempt]) -> None:
    assert decide(attempts, log()).verdict == "not_replayable"


def test_a_control_that_fails_too_says_that_the_machine_or_the_program_is_broken() -> None:
    attempts = [attempt("failed", blamed()), attempt("failed", blamed()), attempt("failed", rung="control")]
    assert decide(attempts, log()).verdict == "setup_failed"


def test_another_op_than_the_one_the_log_named_is_said_to_be_another() -> None:
    failing = [attempt("failed", blamed(), sound_before=True)] * 2
    named_other = decide(failing, log(suspect("custom__gather", 99)))
    assert named_other.verdict == "confirmed_other_op"
    assert any("custom__gather" in text for text in named_other.rules_out)
    assert decide(failing, log(suspect("index", 99))).verdict == "confirmed"
    assert decide(failing, log(suspect("topk_gate", 7))).verdict == "confirmed"  # the same line of the user's


def test_not_reproduced_never_calls_anything_innocent() -> None:
    decision = decide([attempt("passed"), attempt("passed")], log(suspect("aten::index", 7)))
    assert decision.verdict == "not_reproduced"
    assert "does not show any op innocent" in decision.statement
    assert not any("innocent" in text for text in decision.rules_out)


def test_a_failure_that_only_blocking_hides_is_told() -> None:
    attempts = [attempt("failed", blamed(exact=False), rung="locate"), attempt("passed"), attempt("passed")]
    decision = decide(attempts, log())
    assert decision.verdict == "not_reproduced"
    assert "in step 7 without blocking launches" in decision.statement


def test_a_failure_that_comes_and_goes_is_not_confirmed() -> None:
    decision = decide([attempt("failed", blamed()), attempt("passed"), attempt("passed")], log())
    assert decision.verdict == "not_reproduced"
    assert "1 of 3" in decision.statement


def test_a_core_dump_confirms_with_the_blocking_runs_that_passed_as_control() -> None:
    dumps = [attempt("failed", blamed("paged_lookup"), rung="coredump")] * 2
    decision = decide([attempt("passed"), attempt("passed"), *dumps], log())
    assert decision.verdict == "confirmed"
    assert "the device itself named" in decision.rules_out[0]


def test_hang_out_of_memory_and_setup_have_their_own_words() -> None:
    op = blamed()
    assert decide([attempt("hang", op)], log()).verdict == "hang"
    memory = decide([attempt("out_of_memory", op)] * 2, log())
    assert (memory.verdict, memory.op) == ("out_of_memory", op)
    assert decide([attempt("setup_failed")], log()).verdict == "setup_failed"
    assert decide([attempt("setup_failed", rung="locate")], log()).verdict == "setup_failed"


def test_interrupted_before_anything_ran_gives_no_verdict_and_later_keeps_what_was_found() -> None:
    assert decide([attempt("interrupted")], log()).verdict is None
    found = [attempt("failed", blamed(), sound_before=True)] * 2
    assert decide([*found, attempt("interrupted")], log()).verdict == "confirmed"


def test_attempts_that_count_are_named_not_only_numbered() -> None:
    """The attempt that looks for the step fails too, and proves no place."""
    op = blamed()
    located = attempt("failed", blamed("execute", exact=False), rung="locate")
    failing = [attempt("failed", op, number=number, sound_before=True) for number in (2, 3)]
    decision = decide([located, *failing], log())
    assert decision.statement.startswith(f"{op.text()} failed in attempts 2 and 3; ")


def test_every_attempt_that_hung_is_counted() -> None:
    hung = [attempt("hang", rung="locate"), attempt("hang", number=2), attempt("hang", number=3)]
    statement = decide(hung, log()).statement
    assert statement == ("the program did not go on within 1 s in 3 of 3 attempts; nothing told in which op")


@pytest.mark.parametrize(
    ("reached", "events", "witness", "seen"),
    [
        (None, 0, "c10", "none of them started a Python process that could be watched"),
        (None, 2, "xla", "none of them loaded torch or max, whose ops are watched"),
        (None, 2, "c10", "none of them was seen to run an op of the window"),
        (False, 3, "c10", "none of them was seen to run an op of the window"),
    ],
)
def test_a_program_that_was_not_seen_to_reach_the_window_rules_nothing_out(
    reached: bool | None, events: int, witness: str, seen: str
) -> None:
    passed = attempt("passed", reached=reached, events=events)
    decision = decide([passed, passed], log(witnesses=(witness,)))
    assert decision.verdict == "not_reproduced"
    assert seen in decision.statement
    assert "check that the command is the one of the log" in decision.statement
    assert decision.rules_out == ()


def test_a_program_that_ends_before_the_step_of_the_log_rules_nothing_out() -> None:
    named = suspect("aten::index", 7)
    failed_in_4 = log(msgspec.structs.replace(named, op=msgspec.structs.replace(named.op, step=4)))
    short = decide([attempt("passed", steps=2)] * 2, failed_in_4)
    assert "the program ran 2 steps, the log failed in step 4 or later: check that" in short.statement
    assert short.rules_out == ()
    assert decide([attempt("passed", steps=4)] * 2, failed_in_4).rules_out


def test_attempts_without_a_failure_are_all_counted() -> None:
    passed = [attempt("passed", rung="locate"), attempt("passed"), attempt("passed")]
    decision = decide(passed, log())
    assert decision.statement.startswith("no failure in 3 attempts (locate, blocking); ")
    assert decision.rules_out == (
        "a failure at each run: 3 runs on this machine with this command were sound",
    )

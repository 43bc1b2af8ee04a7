"""A window given with ``--window``: only the log clears, and the conclusion says what was left out."""

from __future__ import annotations

import pytest

from analyzer.errors import UsageError
from analyzer.grammar import data_path
from analyzer.pipeline import Options, analyze
from analyzer.schema import Result

SAMPLE_LOGS = data_path("sample_logs")
PAGED = SAMPLE_LOGS / "max_ops/paged_async/input.log.gz"  # 320 launches; 288 before a proof, id 302 is guilty
GATHER = SAMPLE_LOGS / "max_errors/oob_async/input.log"  # id 12 (line 174) met the error of id 8 (line 136)
SYNC = SAMPLE_LOGS / "max_errors/oob_sync/input.log"


def asked(first: int, last: int, log: object = PAGED) -> Result:
    return analyze([str(log)], Options(window=(first, last)))


def test_launches_after_the_window_but_before_the_report_are_not_cleared() -> None:
    cleared = asked(6229, 6600).cleared
    assert cleared.count == 288
    assert not any("never ran" in reason for reason in cleared.reasons)
    assert cleared.reasons[0].startswith("288 launches outside the window: 'step 8 logits 64.0000'")


def test_the_conclusion_says_what_a_chosen_window_leaves_out() -> None:
    conclusion = asked(6229, 6600).conclusion
    assert conclusion.statement.endswith(
        "The window was asked for with --window; it leaves out 14 launches before the report that nothing "
        "clears (between line 6638 and line 6896)."
    )
    assert conclusion.confidence == "ranked"  # 83 % of a choice is not 83 % of what can be guilty


def test_a_window_that_the_log_clears_as_a_whole_accuses_nobody() -> None:
    result = asked(17, 6000)
    assert result.conclusion.confidence == "undecided"
    assert result.conclusion.cause_class == "software"  # what was asked about does not change the cause
    assert result.conclusion.suspect is None
    assert "the log clears all of its 278 launches" in result.conclusion.statement
    assert "leaves out 32 launches before the report" in result.conclusion.statement
    assert result.cleared.count == 10  # those between the window and the proof
    assert result.suspects == []


def test_a_window_that_leaves_nothing_out_keeps_its_confidence() -> None:
    result = asked(6229, 6927)
    assert result.conclusion.confidence == "likely"
    assert result.conclusion.statement.endswith("The window was asked for with --window.")


def test_launches_that_never_ran_stay_cleared_and_are_no_suspects() -> None:
    result = asked(1, 4000, GATHER)
    assert [one.op.id for one in result.cleared.ops] == [12]
    assert result.window is not None
    assert 12 not in [op.id for op in result.window.ops]
    assert result.window.end.line == 174


def test_an_op_that_is_cleared_by_name_is_told_once() -> None:
    cleared = analyze([str(GATHER)]).cleared
    assert (cleared.count, [one.op.id for one in cleared.ops], cleared.reasons) == (1, [12], [])


def test_a_window_behind_the_report_is_refused() -> None:
    with pytest.raises(UsageError, match="--window 174:300: nothing in it can be guilty: the launch of"):
        asked(174, 300, GATHER)


def test_a_window_without_an_outer_op_is_refused() -> None:
    with pytest.raises(UsageError, match="no op of the process that failed is launched there"):
        asked(150, 300, GATHER)


def test_a_window_that_the_conclusion_does_not_need_is_told() -> None:
    conclusion = asked(17, 100, SYNC).conclusion
    assert conclusion.confidence == "proven"
    assert conclusion.statement.endswith("The window given with --window has no part in this.")

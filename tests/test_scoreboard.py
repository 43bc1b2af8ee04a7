"""The score board and the comparison of stated facts: what is a hit, what a false accusation."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from analyzer import scoreboard
from analyzer.schema import Confidence, Result
from analyzer.scoreboard import Expected, ExpectedOp, Score, score
from tests import samples
from tests.report import results

GUILTY = ExpectedOp(name="custom__paged_lookup", id=302)
GUILTY_KNOWN: dict[str, object] = {
    "accuse": True,
    "top": {"name": GUILTY.name, "id": 302},
    "root": None,
    "confidence_in": ["likely"],
}
NOBODY: dict[str, object] = {"accuse": False, "top": None, "root": None, "confidence_in": ["undecided"]}


def stated(facts: dict[str, object], **more: object) -> Expected:
    return msgspec.convert(facts | more, Expected)


def concluded(confidence: Confidence, suspect: int | None) -> Result:
    late = results.late()
    told = msgspec.structs.replace(late.conclusion, confidence=confidence, suspect=suspect)
    return msgspec.structs.replace(late, conclusion=told)


def test_first_suspect_that_is_the_guilty_one_is_a_hit() -> None:
    expected = Score(cases=1, guilty=1, top_1=1, top_3=1)
    assert score(stated(GUILTY_KNOWN), results.late()) == expected


def test_guilty_one_in_second_place_is_a_top_3_hit_only() -> None:
    softmax = stated(GUILTY_KNOWN, top={"name": results.SOFTMAX.name, "id": 319})
    assert score(softmax, concluded("ranked", 1)) == Score(cases=1, guilty=1, top_3=1)


def test_same_name_with_another_id_is_no_hit() -> None:
    other = stated(GUILTY_KNOWN, top={"name": GUILTY.name, "id": 270})
    assert score(other, concluded("ranked", 1)) == Score(cases=1, guilty=1)


@pytest.mark.parametrize("confidence", ["proven", "confirmed", "likely"])
def test_accusing_an_innocent_op_is_a_false_accusation(confidence: Confidence) -> None:
    innocent = concluded(confidence, 2)
    assert score(stated(GUILTY_KNOWN), innocent).false_accusations == 1


@pytest.mark.parametrize("confidence", ["ranked", "undecided"])
def test_a_weak_word_accuses_nobody(confidence: Confidence) -> None:
    assert score(stated(GUILTY_KNOWN), concluded(confidence, 2)).false_accusations == 0


@pytest.mark.parametrize(
    ("confidence", "suspect", "false"),
    [("ranked", 1, 1), ("likely", 1, 1), ("undecided", 1, 0), ("none", 1, 0), ("proven", None, 0)],
)
def test_where_the_log_cannot_tell_anybody_is_one_too_many(
    confidence: Confidence, suspect: int | None, false: int
) -> None:
    assert score(stated(NOBODY), concluded(confidence, suspect)).false_accusations == false


def test_undecided_is_right_only_where_it_was_expected() -> None:
    undecided = concluded("undecided", None)
    assert score(stated(NOBODY), undecided).undecided_rightly == 1
    assert score(stated(GUILTY_KNOWN), undecided).undecided_rightly == 0


def test_scores_add_up_count_by_count() -> None:
    assert Score(cases=1, top_1=1) + Score(cases=2, undecided=1) == Score(cases=3, top_1=1, undecided=1)


def test_misspelt_fact_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="confidence_is"):
        stated(GUILTY_KNOWN, confidence_is=["likely"])


def write_case(root: Path, facts: dict[str, object]) -> None:
    folder = root / "max_ops" / "one"
    folder.mkdir(parents=True)
    (folder / "input.log").write_text("a log\n", encoding="utf-8")
    (folder / "case.json").write_text('{"options": ["--ir", "a.mojo", "--window", "3:9"]}', encoding="utf-8")
    (folder / "expected.json").write_text(json.dumps(facts), encoding="utf-8")


def test_case_gives_paths_and_options_that_open_from_anywhere(tmp_path: Path) -> None:
    write_case(tmp_path, GUILTY_KNOWN)
    (case,) = scoreboard.load_cases(tmp_path)
    options = case.analysis_options(case.folder)
    assert case.name == "max_ops/one"
    assert case.paths() == [str(tmp_path / "max_ops/one/input.log")]
    assert options.ir == (tmp_path / "max_ops/one/a.mojo",)
    assert options.window == (3, 9)


@pytest.mark.parametrize(("facts", "code"), [(GUILTY_KNOWN, 0), (NOBODY, 1)])
@pytest.mark.parametrize("flags", [[], ["--markdown"]])
def test_board_prints_a_table_and_fails_on_a_false_accusation(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    facts: dict[str, object],
    code: int,
    flags: list[str],
) -> None:
    monkeypatch.setattr(scoreboard, "analyze", lambda _paths, _options: results.late())
    write_case(tmp_path, facts)
    assert scoreboard.main([str(tmp_path), *flags]) == code
    header, *_, total = capsys.readouterr().out.splitlines()
    assert "false accusations" in header
    assert ("| total |" if flags else "total ") in total


def test_empty_folder_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scoreboard.main([str(tmp_path)]) == 2
    assert "no case under" in capsys.readouterr().err


TRUE_FACTS: dict[str, object] = {
    "root": {"kind": "illegal_address", "code": 700, "line": 6926, "trust": "late"},
    "top_source": {"file": "max_steps.py", "line": 30},
    "window": {"first": 288, "last": 319, "size": 32, "after_line": 6229},
    "cleared_ids": [270],
    "messenger": None,
    "cause_class": "software",
    "next_step_contains": ["device-sync-mode"],
    "devices": ["gpu:0"],
    "modes": {"device_sync_mode": None},
}


def test_true_facts_give_no_difference() -> None:
    assert list(samples.differences(stated(GUILTY_KNOWN, **TRUE_FACTS), results.late())) == []


@pytest.mark.parametrize(
    ("fact", "wrong", "told"),
    [
        ("root", {"kind": "nan"}, "root.kind: expected 'nan'"),
        ("root", {"kind": "illegal_address", "line": 1}, "root.line: expected 1, got 6926"),
        ("root", None, "root: expected None"),
        ("top", {"name": "mul", "id": 303}, "top: expected"),
        ("top_source", {"file": "max_steps.py", "line": 31}, "top_source: expected ('max_steps.py', 31)"),
        ("window", {"first": 0, "last": 319, "size": 32}, "window.first_op.id: expected 0, got 288"),
        ("window", None, "window: expected None"),
        ("cleared_ids", [302], "cleared_ids: 302 is not among [270]"),
        ("messenger", "custom__nan_check_raise", "messenger: expected 'custom__nan_check_raise'"),
        ("cause_class", "hardware", "cause_class: expected 'hardware'"),
        ("next_step_contains", ["reboot"], "next_step_contains: no command has 'reboot'"),
        ("devices", ["cpu:0"], "devices: expected ['cpu:0']"),
        ("modes", {"device_sync_mode": True}, "modes.device_sync_mode: expected True"),
        ("modes", {"nan_check": {"checked": 1, "of": 5}}, "modes.nan_check: expected [(1, 5)], got []"),
        ("confidence_in", ["proven"], "confidence: expected one of ('proven',), got 'likely'"),
        ("accuse", False, "accuse: False, but rank 1 is accused"),
    ],
)
def test_each_untrue_fact_is_told(fact: str, wrong: object, told: str) -> None:
    found = list(samples.differences(stated(GUILTY_KNOWN | TRUE_FACTS, **{fact: wrong}), results.late()))
    assert any(line.startswith(told) for line in found), found


def test_guilty_op_in_first_place_must_be_the_one_concluded_on() -> None:
    found = list(samples.differences(stated(GUILTY_KNOWN | TRUE_FACTS), concluded("likely", None)))
    assert found == ["conclusion.suspect: expected rank 1, got None"]

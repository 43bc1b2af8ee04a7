"""What the reports tell of a replay: verdict, attempts, what ran, how long, fidelity, what it rules out."""

from __future__ import annotations

import json
from typing import Any, get_args
from xml.etree import ElementTree as ET

import msgspec
import pytest

from analyzer.replay_result import Fidelity, Rung, VerdictName
from analyzer.report import junit, markdown, sarif, terminal
from analyzer.report.request import ReportContext
from analyzer.report.sections import claims, tell
from analyzer.report.story.replayed import FIDELITY_WORDS, RUNG_WORDS, VERDICT_WORDS
from analyzer.schema import Result
from tests.report import replays, results, stories


def section(result: Result) -> str:
    """The replay section as Markdown without marks of code."""
    text = markdown.render(tell(result, ReportContext()))
    return text.partition("## Replay\n")[2].partition("\n## ")[0].replace("`", "")


def case_of(result: Result, start: str) -> ET.Element:
    root = ET.fromstring(junit.render(result))  # noqa: S314 (our own text)
    return next(case for case in root.iter("testcase") if case.get("name", "").startswith(start))


def sarif_of(result: Result) -> Any:
    (one,) = json.loads(sarif.render(result, ReportContext()))["runs"][0]["results"]
    return one


def test_confirmed_program_tells_what_ran_where_it_failed_and_who_wrote_the_index() -> None:
    text = section(replays.of_program())
    assert "**Confirmed**: aten::embedding in step 7 failed in 2 of 2 attempts." in text
    assert "**What ran:** python serve.py '--bad step'." in text
    assert (
        "**Failed at:** aten::embedding in step 7, made at /srv/app/serve.py:18 in forward: "
        "x = self.embedding(ids); input 1: values from 0 to 100." in text
    )
    assert "**Index written by:** aten::copy_ in step 6, made at /srv/app/serve.py:29 in main" in text
    assert "**Rules out** a late report of an earlier launch." in text
    assert "**Control:** the same step with valid indices passed." in text
    assert "**Not tried:** core dump: no GPU." in text


def test_every_attempt_tells_its_way_time_end_switches_and_output() -> None:
    lines = [line for line in section(replays.of_program()).split("\n") if line.startswith("- **Attempt")]
    assert lines[0] == (
        "- **Attempt 1, blocking launches: failed** after 1.2 s, 36 op events in its journal, exit code 1: "
        f"{replays.ERROR}. Switches: CUDA_LAUNCH_BLOCKING=1. Output: {replays.OUTPUTS}/1.log."
    )
    assert "The same op was seen sound earlier in it. The same switches." in lines[1]
    assert lines[2].startswith("- **Attempt 3, control: passed** after 1.2 s, 36 op events in its journal.")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"timed_out": True, "outcome": "hang"},
            "hang** after 1.2 s, 36 op events in its journal, killed at",
        ),
        ({"signal": 11, "exit_code": None}, "journal, signal 11:"),
        ({"outcome": "setup_failed", "ops": 0}, "could not be set up** after 1.2 s, exit code 1"),
        ({"op": replays.COPY}, "at aten::copy_ in step 6 at /srv/app/serve.py:29"),
        ({"fidelity": "statistics"}, "Inputs: values made after recorded statistics."),
        ({"notes": ("the journal is cut",)}, "the journal is cut."),
    ],
)
def test_an_odd_end_of_an_attempt_is_told(changes: dict[str, object], told: str) -> None:
    base = replays.of_program()
    assert base.replay is not None
    done = msgspec.structs.replace(base.replay, attempts=(replays.attempt(1, **changes),))
    assert told in section(msgspec.structs.replace(base, replay=done))


def test_many_attempts_are_counted() -> None:
    base = replays.of_program()
    assert base.replay is not None
    done = msgspec.structs.replace(base.replay, attempts=tuple(replays.attempt(n) for n in range(1, 31)))
    assert "10 more attempts left out here." in section(msgspec.structs.replace(base, replay=done))


def test_ops_of_an_op_replay_are_told_with_their_inputs_times_and_lines() -> None:
    text = section(replays.of_ops())
    assert "**Not reproduced (that is no proof of innocence: blocking hides races)**: no op of" in text
    assert "the ops of the window by themselves, 3 ops." in text
    assert "**Inputs:** made values, valid by construction." in text
    assert (
        "| mo.add | torch.add(x, y) | recorded values | sound | 12.3 us (device) | serve.log:6236 |" in text
    )
    assert "not run: no executor for custom ops" in text
    assert "torch.softmax(x) (stands in: an ATen op for a fused kernel) | values made after recorded" in text
    assert "**Smallest failing list:** 2 ops." in text
    assert "**Program that fails by itself:** repro.py." in text
    assert "The replay was interrupted" in text


def test_failing_and_untried_ops_are_shown_before_sound_ones() -> None:
    base = replays.of_ops()
    assert base.replay is not None
    sound = tuple(msgspec.structs.replace(base.replay.ops[0], number=n) for n in range(100, 200))
    done = msgspec.structs.replace(base.replay, ops=(*sound, *base.replay.ops[1:]))
    text = section(msgspec.structs.replace(base, replay=done))
    assert "no executor for custom ops" in text
    assert "an ATen op for a fused kernel" in text
    assert "62 more ops left out here" in text


def test_a_confirmed_op_is_where_it_happened_and_where_sarif_points() -> None:
    result = replays.of_program()
    text = markdown.render(tell(result, ReportContext())).replace("`", "")
    assert text.startswith("# Post-mortem: IndexError\n")
    assert "**Happened at:** aten::embedding in step 7, made at /srv/app/serve.py:18" in text
    assert "a replay confirmed it." in text
    one = sarif_of(result)
    place = one["locations"][0]
    assert place["physicalLocation"]["region"]["startLine"] == 18
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "aten::embedding"
    related = {place["message"]["text"] for place in one["relatedLocations"]}
    assert {"a replay failed here: aten::embedding", "wrote the index: aten::copy_"} <= related
    facts = one["properties"]
    assert (facts["replayVerdict"], facts["replayAttempts"], facts["replayFailed"]) == ("confirmed", 3, 2)
    assert facts["replayRulesOut"] == ["a late report of an earlier launch"]


def test_sarif_names_the_inputs_of_an_op_replay_and_does_not_move_for_it() -> None:
    one = sarif_of(replays.of_ops())
    assert one["properties"]["replayInputs"] == "made"
    assert one["locations"][0]["physicalLocation"]["region"]["startLine"] == 30


def test_junit_has_a_case_an_attempt_with_what_ran_and_how_it_ended() -> None:
    result = replays.of_program()
    failure = case_of(result, "replay").find("failure")
    assert failure is not None
    assert failure.get("message") == "aten::embedding in step 7 failed in 2 of 2 attempts"
    body = (failure.text or "").split("\n")
    assert body[0] == "What ran: python serve.py '--bad step'."
    assert "Rules out a late report of an earlier launch." in body
    first = case_of(result, "attempt 1: blocking launches")
    assert first.get("time") == "1.250"
    assert first.find("failure") is not None
    assert "Output: /srv/state/replay/1.log." in (first.findtext("system-out") or "")
    control = case_of(result, "attempt 3: control")
    assert control.find("failure") is None
    suite = ET.fromstring(junit.render(result)).find("testsuite")  # noqa: S314 (our own text)
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("time")) == ("4", "3", "3.750")
    assert "made values, valid by construction" in (
        case_of(replays.of_ops(), "attempt 1").findtext("system-out") or ""
    )


def test_terminal_tells_the_inputs_and_where_the_outputs_are() -> None:
    text = " ".join(terminal.render(replays.of_program(), width=200).split())
    assert "attempt 1, blocking launches: failed in 1.2 s: IndexError" in text
    assert f"outputs of the attempts: {replays.OUTPUTS}" in text
    text = " ".join(terminal.render(replays.of_ops(), width=200).split())
    assert "attempt 1, blocking launches, made values, valid by construction: passed" in text
    assert "fails by itself: repro.py" in text


def test_only_the_replay_section_says_what_a_replay_showed() -> None:
    for result in (replays.of_program(), replays.of_ops()):
        story = tell(result, ReportContext())
        others = [one for one in story.sections if one.id != "replay"]
        told = [one.kind for one in claims(msgspec.structs.replace(story, sections=tuple(others)))]
        assert "replayed" not in told
        replay = next(one for one in story.sections if one.id == "replay")
        own = {one.kind for one in claims(msgspec.structs.replace(story, sections=(replay,)))}
        assert own <= {"replayed", "gap"}


@pytest.mark.parametrize("payload", stories.HOSTILE)
def test_hostile_text_of_a_replay_stays_text(payload: str) -> None:
    for base in (replays.of_program(), replays.of_ops()):
        hostile = stories.changed(base, lambda text: f"{payload}{text}{payload}")
        tags = [child.tag for child in ET.fromstring(junit.render(hostile)).iter()]  # noqa: S314 (our own text)
        assert tags == [child.tag for child in ET.fromstring(junit.render(base)).iter()]  # noqa: S314 (the same)


def test_every_word_of_a_replay_has_words_for_people() -> None:
    assert set(RUNG_WORDS) == set(get_args(Rung))
    assert set(FIDELITY_WORDS) == set(get_args(Fidelity))
    assert set(VERDICT_WORDS) == {*get_args(VerdictName), None}


def test_result_without_a_replay_says_how_to_make_one() -> None:
    assert "No replay was made: --replay -- <your command>" in section(results.late())

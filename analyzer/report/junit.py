"""JUnit XML, so that a CI page shows the incident: one case a replay, or one for the analysis."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from analyzer.replay_result import ReplayAttempt
from analyzer.report.limits import encoded
from analyzer.report.plain import plain
from analyzer.report.request import ReportContext
from analyzer.report.signature import signature
from analyzer.report.story.replayed import RUNG_WORDS, attempt_told, replay_told
from analyzer.report.story.telling import Scene, clip, input_names, place_of, root_of, scene_of, sentence_text
from analyzer.report.story.values import FULL, Cite
from analyzer.schema import Fault, Replay, Result

TEXT_CHARS = 4_000
FAILING = frozenset({"confirmed", "confirmed_other_op", "hang", "out_of_memory"})
SKIPPED = frozenset({"not_replayable"})
ERRORS = frozenset({"setup_failed"})
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2


def render(result: Result) -> bytes:
    """One test suite. A verdict that shows the fault again fails its case; "not reproduced" passes."""
    root = root_of(result)
    suite = ET.Element("testsuite", name="trace-analyze")
    if result.replay is not None:
        _replay_case(suite, scene_of(result, ReportContext(), FULL), result.replay)
    else:
        _analysis_case(suite, result, root)
    cases = list(suite)
    for outcome, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(outcome) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suites = ET.Element("testsuites", name="trace-analyze")
    suites.append(_with_properties(suite, result))
    ET.indent(suites)
    return (
        b'<?xml version="1.0" encoding="UTF-8"?>\n' + encoded(ET.tostring(suites, encoding="unicode")) + b"\n"
    )


def _with_properties(suite: ET.Element, result: Result) -> ET.Element:
    made = signature(result)
    known = {
        "tool_version": result.tool_version,
        "confidence": result.conclusion.confidence,
        "cause_class": result.conclusion.cause_class,
        "signature": made.id if made else None,
    }
    properties = ET.Element("properties")
    for name, value in known.items():
        if value is not None:
            ET.SubElement(properties, "property", name=name, value=_text(value))
    suite.insert(0, properties)
    return suite


def _analysis_case(suite: ET.Element, result: Result, root: Fault | None) -> None:
    names = input_names(result)
    case = ET.SubElement(suite, "testcase", classname="trace-analyze", name="analysis")
    if root is None:
        ET.SubElement(case, "system-out").text = _text(result.conclusion.statement)
        return
    failure = ET.SubElement(case, "failure", type=root.kind, message=_text(result.conclusion.statement))
    place = place_of(names, Cite(input=root.input, line=root.line))
    failure.text = _text(f"{place}: {root.text}")


def _replay_case(suite: ET.Element, scene: Scene, replay: Replay) -> None:
    case = ET.SubElement(suite, "testcase", classname="trace-analyze.replay", name="replay")
    outcome = next(
        (
            name
            for name, verdicts in (("failure", FAILING), ("skipped", SKIPPED), ("error", ERRORS))
            if replay.verdict in verdicts
        ),
        None,
    )
    told, verdict = _text(replay.statement), _text(replay.verdict or "interrupted")
    body = _text("\n".join(sentence_text(one) for one in replay_told(scene, replay)), lines=True)
    if outcome is None:
        ET.SubElement(case, "system-out").text = f"{verdict}: {told}\n{body}"
    else:
        kind = {} if outcome == "skipped" else {"type": verdict}
        ET.SubElement(case, outcome, {**kind, "message": told}).text = body
    for attempt in replay.attempts:
        _attempt_case(suite, scene, replay, attempt)
    suite.set("time", f"{sum(one.duration_s for one in replay.attempts):.3f}")


def _attempt_case(suite: ET.Element, scene: Scene, replay: Replay, attempt: ReplayAttempt) -> None:
    """One child: it failed, passed, or did not get as far as the window."""
    case = ET.SubElement(
        suite,
        "testcase",
        classname="trace-analyze.replay",
        name=f"attempt {attempt.number}: {RUNG_WORDS[attempt.rung]}",
        time=f"{attempt.duration_s:.3f}",
    )
    told = _text(attempt.error or attempt.outcome)
    if attempt.outcome in {"setup_failed", "interrupted"}:
        ET.SubElement(case, "error", type=attempt.outcome, message=told)
    elif attempt.outcome in {"failed", "hang", "out_of_memory"}:
        ET.SubElement(case, "failure", type=attempt.kind or attempt.outcome, message=told)
    ET.SubElement(case, "system-out").text = _text(sentence_text(attempt_told(scene, replay, attempt)))


def _text(text: str, *, lines: bool = False) -> str:
    """Text that XML 1.0 can hold; with ``lines`` its line ends are ours and stay."""
    shown = "\n".join(plain(line) for line in text.split("\n")) if lines else plain(text)
    return _NOT_XML.sub("\ufffd", clip(shown, TEXT_CHARS))

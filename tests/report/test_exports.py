"""SARIF, JUnit and Perfetto: shape, meaning, and hostile text."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer import schema
from analyzer.errors import UsageError
from analyzer.report import junit, perfetto, sarif
from analyzer.report.plain import plain
from analyzer.report.request import ReportContext, WindowOp
from tests.report import results, stories

every_result = pytest.mark.parametrize("name", results.ALL)
hostile = pytest.mark.parametrize("payload", stories.HOSTILE)
LEVELS = {"essential", "important", "unimportant"}


def run_of(result: schema.Result, context: ReportContext | None = None) -> Any:
    document = json.loads(sarif.render(result, context or ReportContext()))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    return run


def locations(value: Any) -> list[Any]:
    """Every physical location in a SARIF document."""
    if isinstance(value, dict):
        own = [value["physicalLocation"]] if "physicalLocation" in value else []
        return own + [found for one in value.values() for found in locations(one)]
    return [found for one in value for found in locations(one)] if isinstance(value, list) else []


def check_run(run: Any) -> None:
    """What the SARIF standard asks of the parts that are used."""
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    for one in run["results"]:
        assert one["ruleId"] in rules
        assert one["level"] in {"none", "note", "warning", "error"}
        assert one["message"]["text"]
        assert len(one["message"]["text"]) <= 1024 + 40
        ids = [related["id"] for related in one["relatedLocations"]]
        assert len(set(ids)) == len(ids)
        for flow in one.get("codeFlows", []):
            steps = flow["threadFlows"][0]["locations"]
            assert [step["executionOrder"] for step in steps] == list(range(1, len(steps) + 1))
            assert {step["importance"] for step in steps} <= LEVELS
    for place in locations(run):
        uri = urlsplit(place["artifactLocation"]["uri"])
        assert not uri.scheme
        assert not uri.netloc
        assert not uri.query
        assert not uri.fragment
        assert uri.path
        assert not uri.path.startswith("/")
        assert ".." not in unquote(uri.path).split("/")
        assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
        assert place["region"]["startLine"] >= 1


@every_result
def test_sarif_of_every_result_is_sound(name: str) -> None:
    check_run(run_of(results.ALL[name]))


@hostile
def test_hostile_text_makes_no_sarif_uri_and_no_control_character(payload: str) -> None:
    changed = stories.changed(results.late(), lambda text: f"{payload}{text}{payload}")
    data = sarif.render(changed, ReportContext()).decode()
    check_run(json.loads(data)["runs"][0])
    assert plain(data.replace("\n", "")) == data.replace("\n", "")


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(max_size=60))
def test_any_path_becomes_a_relative_uri(path: str) -> None:
    uri = urlsplit(sarif.relative_uri(path, None))
    assert not uri.scheme
    assert not uri.netloc
    assert uri.path
    assert not uri.path.startswith("/")


def test_source_root_is_taken_off_with_and_without_its_slash() -> None:
    assert sarif.relative_uri("/srv/app/max_steps.py", "/srv/app") == "max_steps.py"
    assert sarif.relative_uri("srv/app/max_steps.py", "/srv/app/") == "max_steps.py"
    assert sarif.relative_uri("/opt/venv/x.py", "/srv/app") == "opt/venv/x.py"
    assert sarif.relative_uri("C:\\app\\a b.py", None) == "C%3A/app/a%20b.py"


def test_suspect_stands_at_its_source_line_and_the_window_is_the_flow() -> None:
    run = run_of(results.late(), ReportContext(source_root="/srv/app"))
    (one,) = run["results"]
    place = one["locations"][0]["physicalLocation"]
    assert one["ruleId"] == "illegal_address"
    assert place["artifactLocation"] == {"uri": "max_steps.py", "uriBaseId": "SRCROOT"}
    assert place["region"]["startLine"] == 30
    assert one["partialFingerprints"] == {"traceAnalyzeSignature/ta1": "ta1-f55ba65d7262"}
    assert one["properties"]["share"] == 0.71
    assert one["properties"]["trust"] == "late"
    texts = [related["message"]["text"] for related in one["relatedLocations"]]
    assert "reported by this line: late, not where it happened" in texts
    steps = one["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["importance"] for step in steps] == ["essential", "important"]
    assert steps[0]["location"]["message"]["text"] == "custom__paged_lookup: suspect 1, 71%"


def test_result_without_source_stands_at_its_line_of_the_log() -> None:
    (one,) = run_of(results.undecided())["results"]
    place = one["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "serve.log", "uriBaseId": "LOGS"}
    assert place["region"]["startLine"] == 16


def test_clean_result_has_no_sarif_result() -> None:
    assert run_of(results.clean())["results"] == []


def test_sarif_flow_is_shortened_with_a_count() -> None:
    ops = tuple(WindowOp(op=results.op("mul", number, number)) for number in range(1, 3001))
    context = ReportContext(window_ops=ops)
    (one,) = run_of(results.late(), context)["results"]
    assert one["codeFlows"][0]["message"]["text"] == "Launches of the window in order, the first 1000 of 3000"
    assert len(one["codeFlows"][0]["threadFlows"][0]["locations"]) == 1000
    small = sarif.render(results.late(), context, 40_000)
    assert len(small) <= 40_000


def suite_of(result: schema.Result) -> ET.Element:
    return check_suite(junit.render(result).decode())


def check_suite(text: str) -> ET.Element:
    """What readers of JUnit rely on: one suite whose counts are those of its cases."""
    root = ET.fromstring(text)  # noqa: S314 (our own text)
    assert root.tag == "testsuites"
    (suite,) = root
    cases = suite.findall("testcase")
    assert suite[0].tag == "properties"
    assert int(suite.get("tests", "")) == len(cases)
    for outcome, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(suite.get(count, "0")) == sum(case.find(outcome) is not None for case in cases)
    assert all(case.get("name") and case.get("classname") for case in cases)
    return suite


@every_result
def test_analysis_case_fails_if_and_only_if_there_is_a_root_fault(name: str) -> None:
    result = results.ALL[name]
    suite = suite_of(msgspec.structs.replace(result, replay=None))
    assert (suite.get("failures") == "1") == any(fault.role == "root" for fault in result.faults)


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        ("confirmed", "failure"),
        ("confirmed_other_op", "failure"),
        ("hang", "failure"),
        ("out_of_memory", "failure"),
        ("not_reproduced", "system-out"),
        ("not_replayable", "skipped"),
        ("setup_failed", "error"),
    ],
)
def test_replay_verdict_decides_its_case(verdict: schema.VerdictName, outcome: str) -> None:
    replay = schema.Replay(verdict=verdict, statement="why")
    suite = suite_of(msgspec.structs.replace(results.late(), replay=replay))
    assert [child.tag for child in suite.findall("testcase")[0]] == [outcome]


@hostile
def test_hostile_text_stays_text_in_junit(payload: str) -> None:
    changed = stories.changed(results.late(), lambda text: f"{payload}{text}{payload}")
    data = junit.render(changed)
    benign = suite_of(results.late())
    assert [child.tag for child in suite_of(changed).iter()] == [child.tag for child in benign.iter()]
    assert plain(data.decode().replace("\n", "")) == data.decode().replace("\n", "")


def trace_of(result: schema.Result, context: ReportContext | None = None) -> Any:
    return json.loads(perfetto.render(result, context or ReportContext()))


def test_trace_without_a_clock_shows_order_and_says_so() -> None:
    trace = trace_of(results.late())
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["ts"], event["dur"], event["name"]) for event in slices] == [
        (0.0, 1.0, "custom__paged_lookup"),
        (1.0, 1.0, "Prologue(add, reduce.softmax, operandIndices=[0])"),
    ]
    assert slices[0]["args"]["suspect_share"] == 0.71
    assert trace["otherData"]["clock"] == "none: 1 us = 1 launch, order and not time"
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"]
    assert names == ["window (order, not time)", "gpu:0"]
    (report,) = [event for event in trace["traceEvents"] if event["ph"] == "i"]
    assert (report["name"], report["ts"]) == ("reported: illegal_address", 2.0)


def test_trace_with_a_clock_shows_time_by_stream() -> None:
    ops = tuple(
        WindowOp(op=results.op("mul", n, n), stream=str(n % 2), launch_ns=5_000 + n * 2_000,
                 completion_ns=None if n == 3 else 6_000 + n * 2_000)
        for n in range(4)
    )  # fmt: skip
    trace = trace_of(results.late(), ReportContext(window_ops=ops))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["ts"], event["dur"], event["tid"]) for event in slices] == [
        (0.0, 1.0, 1), (2.0, 1.0, 2), (4.0, 1.0, 1), (6.0, 0.0, 2)
    ]  # fmt: skip
    assert trace["otherData"]["clock"] == "as logged"
    assert not [event for event in trace["traceEvents"] if event["ph"] == "i"]


@hostile
def test_hostile_text_stays_text_in_a_trace(payload: str) -> None:
    changed = stories.changed(results.late(), lambda text: f"{payload}{text}{payload}")
    trace = trace_of(changed)
    assert len(trace["traceEvents"]) == len(trace_of(results.late())["traceEvents"])
    for event in trace["traceEvents"]:
        assert plain(event["name"]) == event["name"]


def test_trace_of_nothing_is_a_trace() -> None:
    assert [event["ph"] for event in trace_of(results.clean())["traceEvents"]] == ["M"]


def test_trace_over_the_limit_is_refused_not_halved() -> None:
    with pytest.raises(UsageError, match="the Perfetto trace needs"):
        perfetto.render(results.late(), ReportContext(), 100)

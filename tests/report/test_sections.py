"""The skeleton: order, honesty about gaps, and the lint of citations."""

from __future__ import annotations

import re

import msgspec
import pytest

from analyzer import schema
from analyzer.report.request import ReportContext, StepSpan, WindowOp, no_excerpt
from analyzer.report.sections import claims, excerpts_wanted, tell
from analyzer.report.story.telling import input_names
from analyzer.report.story.values import LADDER, Picture, Raw, Section, Story, Table
from tests.report import results, stories
from tests.samples import analysis

every_sample = pytest.mark.parametrize("name", stories.SAMPLES)
every_result = pytest.mark.parametrize("name", results.ALL)
ORDER = [
    "verdict",
    "impact",
    "timeline",
    "fault",
    "suspects",
    "replay",
    "cascade",
    "ruled_out",
    "environment",
    "next",
    "author",
    "appendix",
]


def told(result: schema.Result, context: ReportContext | None = None) -> Story:
    return tell(result, context or ReportContext())


def section(story: Story, name: str) -> Section:
    return next(one for one in story.sections if one.id == name)


def words(story: Story) -> str:
    return "\n".join(stories.text_of(sentence) for sentence in claims(story))


def pictures(story: Story) -> dict[str, Picture]:
    blocks = [block for one in story.sections for block in one.blocks if isinstance(block, Picture)]
    return {block.name: block for block in blocks}


@every_sample
def test_every_claim_about_a_sample_cites_lines_that_bear_it_out(name: str) -> None:
    story = tell(analysis(name), stories.sample_context(name))
    assert list(stories.complaints(story, stories.sample_lines(name))) == []


@every_result
@pytest.mark.parametrize("detail", LADDER)
def test_every_claim_cites_at_every_level_of_detail(name: str, detail: object) -> None:
    story = tell(
        results.ALL[name], ReportContext(), msgspec.convert(msgspec.to_builtins(detail), type(LADDER[0]))
    )
    assert [one for one in claims(story) if one.kind in stories.MUST_CITE and not one.cites] == []


def test_lint_finds_a_claim_without_lines_and_a_quote_that_is_not_there() -> None:
    late = results.late()
    story = told(late)
    lines = [["nothing"] * 7000]
    found = list(stories.complaints(story, lines))
    assert any("is not there" in complaint for complaint in found)
    first = story.sections[0].blocks[0]
    bare = msgspec.structs.replace(first.sentences[0], cites=())  # type: ignore[union-attr]
    block = msgspec.structs.replace(first, sentences=(bare,))
    head = msgspec.structs.replace(story.sections[0], blocks=(block,))
    cut = msgspec.structs.replace(story, sections=(head,))
    assert [one.partition(":")[0] for one in stories.complaints(cut, lines)] == ["uncited"]
    assert any("no such line" in complaint for complaint in stories.complaints(story, [["one"]]))


@every_result
def test_gaps_and_advice_state_no_fact_of_the_log(name: str) -> None:
    for sentence in claims(told(results.ALL[name])):
        if sentence.kind == "gap":
            text = stories.text_of(sentence)
            assert not re.search(r"\d", text) or "left out" in text
            assert {part.text for part in sentence.parts if part.code} <= {"--replay -- <your command>"}


@every_result
def test_sections_come_in_the_order_of_the_skeleton(name: str) -> None:
    found = [one.id for one in told(results.ALL[name]).sections]
    assert found == [name for name in ORDER if name in found]
    assert found[0] == "verdict"


def test_late_report_is_told_apart_from_the_place_where_it_happened() -> None:
    text = words(told(results.late()))
    assert "Reported at: /srv/app/max_steps.py:50 in main." in text
    assert "Trust: late. The place it names is only where the fault was met; it happened earlier" in text
    assert (
        "Happened, likely, at: custom__paged_lookup (id 302, step 9), made at srv/app/max_steps.py:30" in text
    )
    assert "Step 8 is the last step shown to be sound" in text


def test_undecided_result_accuses_nobody() -> None:
    story = told(results.undecided())
    assert "Happened at: cannot be told from these inputs." in words(story)
    assert "suspects" not in [one.id for one in story.sections]


def test_parts_that_no_log_fills_are_left_for_the_author() -> None:
    todos = section(told(results.late()), "author").blocks[0]
    labels = [todo.label for todo in todos.todos]  # type: ignore[union-attr]
    assert labels[:2] == ["Owner", "Customer impact"]


def test_cascade_is_folded_with_counts() -> None:
    result = results.result(
        faults=[
            results.fault(),
            results.fault(role="cascade", line=6930, count=41),
            results.fault(role="teardown", line=6990),
        ]
    )
    summaries = [block.summary for block in section(told(result), "cascade").blocks]  # type: ignore[union-attr]
    assert summaries == [
        "41 reports: caused by the root fault",
        "1 report: errors while shutting down",
    ]


def test_clean_result_says_so_and_asks_for_nothing() -> None:
    story = told(results.clean())
    assert story.title == "Log analysis: no fault found"
    assert story.signature is None
    assert story.confidence == "no fault"
    assert {"author", "replay", "fault"}.isdisjoint(one.id for one in story.sections)
    assert "NaN check: 1 of 5 float outputs" in words(story)


def test_result_without_ops_or_inputs_lines_is_told() -> None:
    empty = results.result(inputs=[], processes=[], timeline=schema.TimelineInfo(
        ops=0, completed=0, unmatched_completions=0, steps=0, devices=[], timing_basis="none", names=0
    ))  # fmt: skip
    assert told(empty).sections[0].id == "verdict"


def test_replay_verdict_and_messenger_are_told() -> None:
    proven = results.proven()
    messenger = results.op("custom__nan_check_raise", 17, 583)
    found = msgspec.structs.replace(proven.conclusion, messenger=messenger)
    text = words(told(msgspec.structs.replace(proven, conclusion=found)))
    assert "Confirmed: failed in 2 of 2 attempts" in text
    assert "custom__nan_check_raise (id 17) is the messenger" in text


def test_raw_lines_around_fault_border_and_suspects_are_quoted_and_marked() -> None:
    wanted = excerpts_wanted(results.late())
    assert wanted == [(0, 6228, 6230), (0, 6548, 6554), (0, 6896, 6902), (0, 6918, 6939)]
    lines = [f"text {number}" for number in range(1, 7001)]
    story = told(results.late(), stories.context_of([lines]))
    raw = [block for block in section(story, "appendix").blocks if isinstance(block, Raw)]
    assert [(block.lines[0].number, block.lines[-1].number) for block in raw] == [one[1:] for one in wanted]
    assert raw[1].lines[0].text == "text 6548"
    assert [line.number for block in raw for line in block.lines if line.marked] == [
        6229,
        6548,
        6554,
        6896,
        6926,
        6930,
    ]


def test_without_raw_lines_the_appendix_says_so() -> None:
    assert list(no_excerpt(0, 1, 5)) == []
    assert "The raw lines are not at hand." in words(told(results.late()))


def test_long_lines_are_cut_with_a_count() -> None:
    context = stories.context_of([["x" * 5000] * 7000])
    raw = [
        block for block in section(told(results.late(), context), "appendix").blocks if isinstance(block, Raw)
    ]
    assert raw[0].lines[0].text.endswith("… (4,600 more characters)")


def test_time_is_shown_where_a_fault_has_one_and_no_axis_is_invented() -> None:
    story = told(results.late())
    assert "No clock in these records: order, not time." in words(story)
    assert "No clock in this log: durations of steps and ops cannot be shown." in words(story)
    cases = {
        1_764_460_800_250_000_000: "2025-11-30 00:00:00.250",
        85_041_197_000_000: "23:37:21.197",
        86_400_000_000_000 * 40: "02-10 00:00:00.000",
    }
    for time_ns, shown in cases.items():
        clocked = msgspec.structs.replace(results.late(), faults=[results.fault(time_ns=time_ns)])
        table = section(told(clocked), "timeline").blocks[0]
        assert isinstance(table, Table)
        assert table.columns[0] == "time as logged"
        assert table.rows[-1].cells[0][0].text == shown


def test_launch_order_shows_cleared_work_window_and_report() -> None:
    picture = pictures(told(results.late()))["launch-order"]
    rows = picture.text.split("\n")
    assert rows[1] == "[287 cleared] |▆▁| X"
    assert rows[2].index("^") == rows[1].index("▆")
    assert rows[3] == "  ^ suspect 1: custom__paged_lookup, 71% (line 6548)"
    assert rows[4] == "  X reported: illegal address (line 6926)"
    assert "Suspect 1 is custom__paged_lookup with 71%, line 6548." in picture.alt


def test_many_launches_are_folded_around_the_suspects() -> None:
    ops = [results.op("mul", number, 6400 + number) for number in range(1, 400)]
    ops[200] = results.PAGED
    late = results.late()
    assert late.window is not None
    window = msgspec.structs.replace(late.window, ops=ops)
    text = pictures(told(msgspec.structs.replace(late, window=window)))["launch-order"].text
    assert "|~▆~|" in text
    assert "~ 398 launches folded" in text


def test_device_and_stream_make_the_lanes() -> None:
    ops = tuple(
        WindowOp(op=results.op("mul", number, 6300 + number), stream=str(number % 2), launch_ns=number * 100)
        for number in range(1, 9)
    )
    context = ReportContext(window_ops=ops)
    picture = pictures(told(results.late(), context))["launch-order"]
    lanes = {cell.lane for cell in picture.chart.cells}  # type: ignore[union-attr]
    assert lanes == {"gpu:0 stream 0", "gpu:0 stream 1"}
    assert picture.note is None


def test_steps_and_op_times_are_drawn_where_the_log_has_times() -> None:
    steps = tuple(
        StepSpan(step=n, first_line=n * 100 + 1, last_line=n * 100 + 99, launches=32, start_ns=n * 10**9,
                 end_ns=n * 10**9 + (4 if n < 9 else 40) * 10**6)
        for n in range(10)
    )  # fmt: skip
    timeline = msgspec.structs.replace(
        results.late().timeline,
        timing_basis="host",
        slowest=[schema.OpTotal(name="custom__paged_lookup", count=9, total_ns=5_000_000)],
    )
    story = told(msgspec.structs.replace(results.late(), timeline=timeline), ReportContext(steps=steps))
    found = pictures(story)
    assert "median 4.0 ms; the failing step took 40.0 ms" in found["steps"].alt
    assert found["steps"].text.splitlines()[-1].endswith("step 9 <")
    assert "times of the host: how long the launch call took, not the kernel" in found["op-times"].alt
    assert "No clock in this log" not in words(story)


def test_inputs_of_the_same_name_are_told_apart() -> None:
    def named(*paths: str) -> tuple[str, ...]:
        infos = [schema.InputInfo(path=path, size_bytes=1, lines=1) for path in paths]
        return input_names(results.result(inputs=infos))

    assert named("a/serve.log", "b/other.log") == ("serve.log", "other.log")
    assert named("a/serve.log", "b/serve.log") == ("a/serve.log", "b/serve.log")
    assert named("x/a/serve.log", "y/a/serve.log") == ("a/serve.log#1", "a/serve.log#2")
    assert named("-") == ("-",)


def test_processes_ranks_and_unread_texts_are_told() -> None:
    processes = [
        schema.ProcessInfo(key=f"rank{rank}", input=0, rank=rank, pid=100 + rank, ops=5, runs=1)
        for rank in (0, 1)
    ]
    result = msgspec.structs.replace(results.losses(), processes=processes)
    text = words(told(result))
    assert "2 processes with op records: rank0 (rank 0), rank1 (rank 1)." in text
    assert "7 texts of known programs not understood; the first: unexpected end." in text


def test_requests_in_flight_are_named_with_their_lines() -> None:
    requests = [schema.Impact(request_id=f"cmpl-{n}", tokens=n or None, line=40) for n in range(10)]
    text = words(told(msgspec.structs.replace(results.late(), impact=requests, impact_omitted=3)))
    assert "13 requests in flight: cmpl-0, cmpl-1 (1 token), cmpl-2 (2 tokens)" in text
    assert "cmpl-7 (7 tokens) and 5 more." in text
    assert "Requests in flight: not told" not in text


def test_time_of_analysis_is_printed_only_where_asked() -> None:
    assert "analysed" not in told(results.late()).footer
    asked = told(results.late(), ReportContext(analysed_at="2025-11-30T01:00:00Z"))
    assert asked.footer.endswith("analysed 2025-11-30T01:00:00Z")

"""Reports of the sample logs, made as the command line makes them: a dozen as reviewed, and rules for all.

Goldens hold neither the style sheet nor the pictures' SVG (its bytes belong to the plotting library), and
no tool version. ``python -m pytest --update-golden tests/report`` writes them anew; the diff is the review.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path

import jsonschema
import msgspec
import pytest
from rich.cells import cell_len

from analyzer import schema
from analyzer.cli.reports import report_context
from analyzer.pipeline import open_analysis
from analyzer.report import pictures, terminal
from analyzer.report.build import render_reports
from analyzer.report.plain import plain
from analyzer.report.request import GITHUB_COMMENT_BYTES, HTML_BYTES, ReportContext, ReportRequest
from analyzer.report.sections import tell
from tests import samples
from tests.report import replays, stories
from tests.report.test_exports import check_run, check_suite
from tests.report.test_html import TAGS, Page
from tests.samples import cases

GOLDEN = Path(__file__).parent / "golden" / "samples"
ENDINGS = (".md", ".html", ".json", ".sarif", ".xml", ".perfetto.json")
WIDTH = 100
# Every confidence word ("confirmed" needs a replay) and every family of witnesses that is read differently.
CHOSEN = (
    "max_ops/paged_async",  # likely
    "max_ops/clean_sync",  # no fault
    "max_errors/oob_no_oplog",  # undecided
    "max_errors/nan_check",  # a messenger
    "aoti_printer/names_late",  # ranked
    "aoti_printer/index_cuda",
    "c10/messenger",
    "coredump/paged",  # proven
    "compute-sanitizer/messenger",
    "process_group_nccl/one_rank_missing",
    "vllm/engine_core_ima",
    "xid/hardware_beside_error",
    "oom/fragmented",
)
CONFIRMED = "confirmed"
SUITES = (".md", ".html", ".sarif", ".xml", ".perfetto.json", ".txt")
_STYLE = re.compile(r"(?<=<style>).*?(?=</style>)", re.DOTALL)


@contextmanager
def opened(name: str) -> Iterator[tuple[schema.Result, ReportContext]]:
    """The analysis of a case and what its reports need, as the command line has them."""
    case = next(case for case in cases() if case.name == name)
    with chdir(case.folder), open_analysis(list(case.inputs), case.analysis_options(Path())) as analysis:
        result = msgspec.structs.replace(analysis.result, tool_version="*")
        yield result, report_context(analysis)


def made(result: schema.Result, context: ReportContext) -> dict[str, str]:
    wanted = [ReportRequest(path=Path(f"report{ending}")) for ending in ENDINGS]
    found = {path.name[len("report") :]: data for path, data in render_reports(result, wanted, context)}
    return {ending: data.decode("utf-8") for ending, data in found.items()} | {
        ".txt": terminal.render(result, width=WIDTH)
    }


@cache
def reviewed(name: str) -> dict[str, str]:
    if name == CONFIRMED:
        found = made(replays.of_program(), stories.context_of([["a line of the log"] * 7000]))
    else:
        with opened(name) as (result, context):
            found = made(result, context)
    return found | {".html": _STYLE.sub("", found[".html"])}


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "available", lambda: False)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("ending", SUITES)
@pytest.mark.parametrize("name", [*CHOSEN, CONFIRMED])
def test_reports_of_a_sample_are_as_reviewed(name: str, ending: str, update_golden: bool) -> None:
    now = reviewed(name)[ending]
    path = GOLDEN / f"{name.replace('/', '.')}{ending}"
    if update_golden:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(now, encoding="utf-8")
    assert path.exists(), f"{path} is missing: run pytest --update-golden and review what it wrote"
    before = path.read_text(encoding="utf-8")
    diff = difflib.unified_diff(before.splitlines(), now.splitlines(), "golden", "now", lineterm="", n=2)
    assert now == before, f"{path.name} changed; if right: pytest --update-golden\n" + "\n".join(diff)


def test_goldens_are_of_the_chosen_samples_and_show_every_confidence() -> None:
    """A renamed sample leaves no golden behind, and no word of the confidence is untried."""
    wanted = {f"{name.replace('/', '.')}{ending}" for name in (*CHOSEN, CONFIRMED) for ending in SUITES}
    assert {path.name for path in GOLDEN.iterdir()} == wanted
    words = {stories.sample_result(name).conclusion.confidence for name in CHOSEN} | {"confirmed"}
    assert words == {"proven", "confirmed", "likely", "ranked", "undecided", "none"}


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(json.dumps(schema.json_schema())))


def check_markdown(text: str) -> None:
    assert text.startswith("# ")
    assert len(text.encode()) <= GITHUB_COMMENT_BYTES


def check_page(text: str) -> None:
    page = Page(text)
    assert set(page.tags) <= TAGS
    assert page.open == []
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    assert {value[1:] for value in page.values("href") if value.startswith("#")} <= set(ids)
    assert len(text.encode()) <= HTML_BYTES


def check_trace(text: str) -> None:
    events = json.loads(text)["traceEvents"]
    assert {event["ph"] for event in events} <= {"M", "X", "i"}
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def check_terminal(text: str) -> None:
    steps = text.partition("\nRun next\n")[2].partition("\n\n")[0].splitlines()
    commands = [line for line in text.splitlines() if cell_len(line) > WIDTH]
    assert all(line in steps and line.startswith("  ") for line in commands), commands  # to be copied whole
    assert all(line == line.rstrip() for line in text.splitlines())


CHECKS: dict[str, Callable[[str], object]] = {
    ".md": check_markdown,
    ".html": check_page,
    ".json": lambda text: validator().validate(json.loads(text)),
    ".sarif": lambda text: check_run(json.loads(text)["runs"][0]),
    ".xml": check_suite,
    ".perfetto.json": check_trace,
    ".txt": check_terminal,
}


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("name", stories.SAMPLES)
def test_reports_of_every_sample_keep_the_rules(name: str) -> None:
    """Rendered, the same bytes twice, valid, within limits, no control character, every claim cited."""
    one = samples.opened(name)
    result, context = msgspec.structs.replace(one.result, tool_version="*"), one.context
    found, again = made(result, context), made(result, context)
    story = tell(result, context)
    for ending, text in found.items():
        assert text == again[ending], f"{ending}: not the same bytes twice"
        assert text.endswith("\n"), ending
        assert not text.endswith("\n\n"), ending
        assert plain(text.replace("\n", "")) == text.replace("\n", ""), ending
        CHECKS[ending](text)
    assert list(stories.complaints(story, stories.sample_lines(name))) == []


def test_rules_find_a_report_that_breaks_them() -> None:
    with pytest.raises(jsonschema.ValidationError):
        CHECKS[".json"]('{"schema_version": 1}')
    with pytest.raises(AssertionError):
        check_page("<script>1</script>")
    with pytest.raises(AssertionError):
        check_terminal("x" * (WIDTH + 1))
    with pytest.raises(AssertionError):
        check_terminal("Run next\n  x\n\n" + "  x" * WIDTH)
    with pytest.raises(AssertionError):
        check_suite("<testsuites><testsuite tests='2'><properties/></testsuite></testsuites>")

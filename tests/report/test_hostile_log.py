"""A log written to attack its reader, from the bytes to every report."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from analyzer.pipeline import open_analysis
from analyzer.report import pictures, terminal
from analyzer.report.build import render_reports
from analyzer.report.plain import plain
from analyzer.report.request import ReportContext, ReportRequest
from tests.report import stories
from tests.report.test_exports import check_run
from tests.report.test_html import TAGS, URLS, Page

ENDINGS = (".md", ".html", ".json", ".sarif", ".xml", ".perfetto.json")
MEGABYTE = 1_000_000
MARK = "from-the-log"  # shows that a report has the hostile text at all
# Of one line each: a log is read by lines. The op log's grammar takes such names as they are.
ONE_LINE = tuple(
    payload.replace("\n", " ").replace("\r", " ").replace("\u2028", " ") for payload in stories.HOSTILE
)


def attack(payload: str) -> str:
    """Two steps of a MAX op log and a late report, with ``payload`` wherever text of others can stand."""
    ops = [
        f"[OP] {what} custom__{payload} [id={number}] \n"
        f"srv/{payload}/app.py:{number + 1}:{payload}\n;target=gpu:0"
        for number in range(6)
        for what in ("LAUNCH", "COMPLETE")
    ]
    error = (
        f'Traceback (most recent call last):\n  File "/srv/{payload}/app.py", line 7, in {payload}\n'
        f"    {payload}\n"
        f"RuntimeError: CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS ({MARK} {payload})\n{payload}\n"
    )
    return "\n".join([*ops[:6], f"step 0 logits {payload} 64.0", *ops[6:], error])


def reports_of(folder: Path, text: str) -> dict[str, bytes]:
    log = folder / "serve.log"
    log.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    with open_analysis([str(log)]) as analysis:
        context = ReportContext(excerpt=analysis.excerpt)
        wanted = [ReportRequest(path=Path(f"r{ending}")) for ending in ENDINGS]
        made = render_reports(analysis.result, wanted, context)
        shown = terminal.render(analysis.result, width=100).encode()
    return {**{path.name[1:]: data for path, data in made}, "terminal": shown}


@pytest.mark.parametrize("payload", ONE_LINE)
def test_hostile_log_injects_nothing_into_any_report(payload: str, tmp_path: Path) -> None:
    found = reports_of(tmp_path, attack(payload))
    for ending, data in found.items():
        text = data.decode("utf-8")
        if ending != ".json":  # escapes of its own
            assert plain(text.replace("\n", "")) == text.replace("\n", ""), ending
        if ending in {".md", ".html", ".json", ".xml", "terminal"}:  # the others have no error text
            assert MARK in text, ending
    page = Page(found[".html"].decode())
    assert set(page.tags) <= TAGS
    assert page.open == []
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [v for name, v in page.attributes if name in URLS and not v.startswith(("#", "data:,"))]
    assert str(1234 * 5678) not in found[".html"].decode()
    check_run(json.loads(found[".sarif"])["runs"][0])
    suites = ET.fromstring(found[".xml"])  # noqa: S314 (our own text)
    assert {one.tag for one in suites.iter()} == {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure"
    }  # fmt: skip
    assert b"<!DOCTYPE" not in found[".xml"]
    json.loads(found[".json"])
    json.loads(found[".perfetto.json"])


@pytest.mark.parametrize("filler", ["x", "<b>", "a/", "`", "\u202e", "é", "1:", "'", "\\"])
def test_lines_of_a_megabyte_are_cut_and_cost_little(
    filler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "available", lambda: False)
    payload = filler * (MEGABYTE // len(filler))
    found = reports_of(
        tmp_path, attack("p").replace(" p)", f" p {payload})").replace("    p\n", f"    {payload}\n")
    )
    for ending in (".md", ".html", ".sarif", ".xml", ".perfetto.json", "terminal"):
        assert len(found[ending]) < 60_000, ending

"""One input through the pipeline and the reports, and what must hold whatever it was."""

from __future__ import annotations

import json
import signal
import time
import traceback
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import msgspec

from analyzer.cli.reports import report_context
from analyzer.errors import InputError
from analyzer.pipeline import Analysis, open_analysis
from analyzer.report import terminal
from analyzer.report.build import ReportContext, ReportKind, ReportRequest, render_reports
from analyzer.schema import Result, json_schema

LONGEST_S = 60.0  # an input of a few KB that takes longer hangs
# Elements of HTML that have no end.
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """``stage``: crash, accounting, report. ``where``: the same for all inputs that fail alike."""

    stage: str
    where: str
    text: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an input."""

    failure: Failure | None
    refused: bool
    seconds: float


class InputTimeoutError(Exception):
    """An input took longer than ``LONGEST_S``."""


def check(data: bytes, folder: Path, *, reports: bool = True) -> Outcome:
    """Analyse ``data`` as a file of ``folder``; no exception leaves but an interrupt."""
    path = folder / "input.log"
    path.write_bytes(data)
    began = time.perf_counter()
    refused, failure = False, None
    try:
        with _limited(LONGEST_S):
            refused, failure = _analysed(path, reports=reports)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 (a panic of Polars is no Exception; finding it is the aim)
        failure = _failure("crash", error)
    return Outcome(failure=failure, refused=refused, seconds=time.perf_counter() - began)


def _analysed(path: Path, *, reports: bool) -> tuple[bool, Failure | None]:
    try:
        with open_analysis([str(path)]) as analysis:
            wrong = accounting_error(analysis.result)
            if wrong:
                return False, Failure(stage="accounting", where=wrong.split(":")[0], text=wrong)
            if reports:
                try:
                    check_reports(analysis)
                except Exception as error:  # noqa: BLE001 (finding it is the aim)
                    return False, _failure("report", error)
    except InputError:  # a clear refusal
        return True, None
    return False, None


def accounting_error(result: Result) -> str | None:
    """Why the counts are wrong; null = every line is counted once."""
    counts = result.accounting
    parts = {
        "parsed": counts.parsed,
        "continuation": counts.continuation,
        "ignored": counts.ignored,
        "unrecognised": counts.unrecognised,
    }
    negative = [name for name, count in parts.items() if count < 0]
    if negative:
        return f"negative {' and '.join(negative)}: {parts}"
    if sum(parts.values()) != counts.total_lines or counts.total_lines != sum(i.lines for i in result.inputs):
        return f"sum: {parts} of {counts.total_lines} lines, {[one.lines for one in result.inputs]}"
    return None


def check_reports(analysis: Analysis) -> None:
    """Write all kinds of report and read them back.

    Raises:
        Exception: Whatever a writer, a parser or the schema has against it.
    """
    context = report_context(analysis)
    for kind in ReportKind:
        parse_report(kind, _report(analysis.result, kind, context))
    terminal.render(analysis.result, width=100, color=True, top=3).encode("utf-8")


def _report(result: Result, kind: ReportKind, context: ReportContext) -> bytes:
    ((_, content),) = render_reports(result, [ReportRequest(path=Path("report"), kind=kind)], context)
    return content


def parse_report(kind: ReportKind, content: bytes) -> None:
    """Read a report as its readers do.

    Raises:
        Exception: It is not of its kind.
    """
    text = content.decode("utf-8")
    match kind:
        case ReportKind.markdown:
            assert text.startswith("#") or text.strip()
        case ReportKind.html:
            _Page().check(text)
        case ReportKind.json:
            validator().validate(json.loads(text, parse_constant=_refuse))
        case ReportKind.sarif:
            assert json.loads(text, parse_constant=_refuse)["version"] == "2.1.0"
        case ReportKind.junit:
            assert ET.fromstring(text).tag in {"testsuites", "testsuite"}  # noqa: S314 (our own text)
        case ReportKind.perfetto:
            assert "traceEvents" in json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


@cache
def validator() -> Any:
    """The validator of the published schema."""
    return jsonschema.Draft202012Validator(json.loads(json.dumps(json_schema())))


class _Page(HTMLParser):
    """Each element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []

    def check(self, text: str) -> None:
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 (the name is the library's)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """``<path/>`` of a picture opens nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"


def _failure(stage: str, error: BaseException) -> Failure:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "analyzer" in Path(frame.filename).parts] or list(frames)
    last = own[-1]
    where = f"{type(error).__name__} at {'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}"
    return Failure(stage=stage, where=where, text=str(error)[:300])


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: object) -> None:
        raise InputTimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

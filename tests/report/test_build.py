"""All kinds by name, snapshots, size limits, determinism, and writing without loss."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from pathlib import Path

import msgspec
import pytest

from analyzer import schema
from analyzer.errors import UsageError
from analyzer.report import pictures
from analyzer.report.build import render_reports
from analyzer.report.request import (
    GITHUB_COMMENT_BYTES,
    HTML_BYTES,
    JOB_SUMMARY_BYTES,
    ReportContext,
    ReportKind,
    ReportRequest,
    kind_of,
)
from analyzer.report.write import WriteError, write_atomically
from tests.report import results, stories

GOLDEN = Path(__file__).parent / "golden"
ENDINGS = (".md", ".html", ".json", ".sarif", ".xml", ".perfetto.json")
SNAPSHOTS = ("late", "proven", "undecided", "clean", "losses")
SAMPLE = "max_ops/paged_async"
MEGABYTE = 1_000_000


def render(
    result: schema.Result, ending: str, limit: int | None = None, context: ReportContext | None = None
) -> bytes:
    request = ReportRequest(path=Path(f"report{ending}"), limit_bytes=limit)
    ((path, data),) = render_reports(result, [request], context or ReportContext())
    assert path == request.path
    return data


def huge() -> schema.Result:
    """As much of everything as a bad day brings."""
    ops = [results.op(f"Epilogue(matmul_{n}, {'x' * 300})", n, n) for n in range(1, 1000)]
    suspects = [
        msgspec.structs.replace(results.paged_suspect(), rank=n, op=op, share=1 / 1000)
        for n, op in enumerate(ops, 1)
    ]
    faults = [results.fault()] + [
        results.fault(role="cascade", line=7000 + n, text="y" * 500) for n in range(2000)
    ]
    losses = [
        schema.Loss(input=0, line=n, witness="max_ops", text="z" * 300, why="odd") for n in range(1, 1000)
    ]
    cleared = schema.Cleared(
        count=5000,
        ops=[schema.ClearedOp(op=op, reason="r" * 200) for op in ops[:500]],
        reasons=["q" * 400] * 50,
    )
    late = results.late()
    assert late.window is not None
    window = msgspec.structs.replace(late.window, ops=ops)
    return msgspec.structs.replace(
        late, suspects=suspects, faults=faults, losses=losses, cleared=cleared, window=window
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.md", "markdown"),
        ("a.MARKDOWN", "markdown"),
        ("a.html", "html"),
        ("a.htm", "html"),
        ("a.json", "json"),
        ("a.sarif", "sarif"),
        ("a.sarif.json", "sarif"),
        ("a.xml", "junit"),
        ("a.perfetto.json", "perfetto"),
        ("a.pftrace", "perfetto"),
    ],
)
def test_ending_says_the_kind(name: str, kind: str) -> None:
    assert kind_of(ReportRequest(path=Path(name))) is ReportKind(kind)


def test_asked_kind_wins_over_the_ending_and_an_unknown_ending_is_refused() -> None:
    assert kind_of(ReportRequest(path=Path("a.txt"), kind=ReportKind.markdown)) is ReportKind.markdown
    with pytest.raises(UsageError, match=r"a\.txt: the ending says no kind of report; use one of .*\.md"):
        kind_of(ReportRequest(path=Path("a.txt")))


def test_the_same_file_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="asked for twice"):
        render_reports(results.late(), [ReportRequest(path=Path("a.md"))] * 2, ReportContext())


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_reports_are_as_reviewed(
    name: str,
    ending: str,
    update_golden: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Snapshots without pictures: their bytes belong to the plotting library."""
    if ending == ".json":
        pytest.skip("test_json.py")
    monkeypatch.setattr(pictures, "available", lambda: False)
    lines = [[f"line {number} of the log" for number in range(1, 7001)]] * 2
    data = render(results.ALL[name], ending, context=stories.context_of(lines))
    path = GOLDEN / f"{name}{ending}"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    assert path.read_bytes() == data, f"{path.name} changed: --update-golden writes it anew, read the diff"


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_input_gives_the_same_bytes(ending: str) -> None:
    first = render(stories.sample_result(SAMPLE), ending, context=stories.sample_context(SAMPLE))
    assert first == render(stories.sample_result(SAMPLE), ending, context=stories.sample_context(SAMPLE))


@pytest.mark.parametrize("ending", ENDINGS)
def test_redaction_reaches_every_kind(ending: str) -> None:
    private = stories.changed(results.late(), lambda text: text.replace("/srv/app", "/home/alice/app"))
    context = stories.context_of([["alice on 10.9.8.7"] * 7000], redact=True)
    data = render(private, ending, context=context)
    assert b"alice" not in data
    assert b"10.9.8.7" not in data


@pytest.mark.parametrize("limit", [GITHUB_COMMENT_BYTES, 8_000, 1_500])
def test_markdown_keeps_its_limit_and_counts_what_it_left_out(limit: int) -> None:
    lines = [["w" * 900] * 9000]
    data = render(huge(), ".md", limit, stories.context_of(lines))
    assert len(data) <= limit
    text = data.decode()
    assert text.startswith("# Post-mortem: illegal address on gpu:0\n\n## Verdict\n")
    assert "left out" in text or "Left out" in text


def test_default_limits_are_those_of_the_places_reports_go_to() -> None:
    context = stories.context_of([["w" * 900] * 9000])
    assert len(render(huge(), ".md", context=context)) <= GITHUB_COMMENT_BYTES
    assert len(render(huge(), ".md", JOB_SUMMARY_BYTES, context)) <= JOB_SUMMARY_BYTES
    assert len(render(huge(), ".html", context=context)) <= HTML_BYTES


@pytest.mark.parametrize("ending", ENDINGS)
def test_three_thousand_suspects_are_told_in_no_time(ending: str) -> None:
    """Each distinct text is looked at once, however often it stands in the result."""
    paged = results.paged_suspect()
    ops = [results.op(f"Epilogue(matmul_{n}, {'x' * 60})", n, n, step=9) for n in range(1, 3001)]
    suspects = [msgspec.structs.replace(paged, rank=n, op=op, share=1 / 3000) for n, op in enumerate(ops, 1)]
    result = msgspec.structs.replace(results.late(), suspects=suspects)
    start = time.process_time()
    render(result, ending, context=stories.context_of([["w" * 200] * 9000], redact=True))
    assert time.process_time() - start < 2


def test_small_report_is_not_called_shortened() -> None:
    assert b"hortened" not in render(results.late(), ".md")


def test_limit_below_the_verdict_is_refused() -> None:
    with pytest.raises(UsageError, match="not even the verdict fits"):
        render(results.late(), ".md", 100)


def test_json_moves_unread_texts_into_their_count_to_keep_a_limit() -> None:
    losses = [
        schema.Loss(input=0, line=n, witness="w", text="t" * 100, why="odd", count=2) for n in range(1, 500)
    ]
    result = msgspec.structs.replace(results.clean(), losses=losses, losses_omitted=1)
    data = render(result, ".json", 20_000)
    assert json.loads(data)["losses"] == []
    assert json.loads(data)["losses_omitted"] == 999
    with pytest.raises(UsageError, match="the JSON report needs"):
        render(result, ".json", 100)


def test_new_report_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    write_atomically(path, b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "report.md", b"x")
    assert (tmp_path / "report.md").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("step", ["fsync", "fchmod"])
def test_a_failed_write_keeps_the_old_report_and_says_why(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.md"
    write_atomically(path, b"old")

    def fail(*_args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(
        WriteError, match="no space left on the device; the old report is unchanged"
    ) as caught:
        write_atomically(path, b"new")
    assert caught.value.exit_code == 3
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_and_a_folder_as_target_are_told(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="the folder does not exist"):
        write_atomically(tmp_path / "no" / "report.md", b"x")
    with pytest.raises(WriteError, match="it is a folder"):
        write_atomically(tmp_path, b"x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_missing_permission_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(WriteError, match="no permission to write there"):
        write_atomically(tmp_path / "report.md", b"x")


def test_a_link_keeps_its_place_and_its_target_gets_the_report(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_bytes(b"old")
    (tmp_path / "link.md").symlink_to("real.md")
    write_atomically(tmp_path / "link.md", b"new")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_bytes() == b"new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"through")
    reader.join(10)
    assert found == [b"through"]


def test_a_very_long_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="the name is too long"):
        write_atomically(tmp_path / ("x" * 300 + ".md"), b"x")

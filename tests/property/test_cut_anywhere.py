"""A log that is cut anywhere never accuses somebody else than the whole one does."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from analyzer.errors import InputError, UsageError
from analyzer.pipeline import analyze
from analyzer.schema import Fault, Result
from analyzer.scoreboard import ACCUSING, Case, accused_suspect
from tests import samples
from tests.property.test_decoration import analysed, content

NEAR_BYTES = 1_500  # behind the begin of the root fault, where half of the cuts are
REFUSED = (InputError, UsageError)  # nothing is left of the file, of the window or the process asked for


def cuts(case: Case, data: bytes, count: int) -> Iterator[int]:
    """Places by a hash of the name, the same in each run: anywhere, and by turns inside the root fault."""
    random = Random(zlib.crc32(case.name.encode()))  # noqa: S311 (to be repeated, not to be secret)
    root = samples.root_fault(samples.analysis(case.name))
    near = (root.byte_offset or 0) if root is not None and root.input == 0 else 0
    for number in range(count):
        first, last = (near + 1, near + NEAR_BYTES) if number % 2 else (1, len(data))
        yield random.randint(first, max(first, min(last, len(data))))


def other_culprit(part: Result, whole: Result) -> str | None:
    """Whom the cut log accuses wrongly; null = nobody.

    An op: another launch, or an op of another name, than the one of the whole log, save where the whole
    log accuses nobody because it tells of several. A name without launch is that of a kernel or of no op.
    An error: one that the whole log lists beside its root. What the whole log does not list as one, it reads
    as part of the root; where it has no root, what stands behind the cut absolves the error.
    """
    if part.conclusion.confidence not in ACCUSING:
        return None
    accused, guilty = accused_suspect(part), accused_suspect(whole)
    if accused is not None:
        others = [one.op for one in whole.suspects if one != guilty]
        names = {one.name for one in (*others, *(cleared.op for cleared in whole.cleared.ops))}
        same_name = guilty is not None and accused.op.name == guilty.op.name
        told = part.conclusion.statement
        if guilty is None:
            return None if accused.op in others else accused.op.name
        if accused.op.id is None and accused.op.name not in names:
            return None
        same = accused.op.id == guilty.op.id or f"id {accused.op.id}" not in told
        return None if same_name and same else accused.op.name
    said, root = samples.root_fault(part), samples.root_fault(whole)
    if said is None or root is None or is_same(said, root):
        return None
    return said.text if any(is_same(said, one) for one in whole.faults) else None


def is_same(one: Fault, other: Fault) -> bool:
    """Whether two results tell of one fault."""
    return (one.input, one.line) == (other.input, other.line)


def check(case: Case, count: int, folder: Path) -> None:
    data, whole = content(case), samples.analysis(case.name)
    for at in sorted(set(cuts(case, data, count))):
        try:
            part = analysed(case, data[:at], folder)
        except REFUSED:
            continue
        assert other_culprit(part, whole) is None, at


@pytest.mark.parametrize("case", samples.cases(), ids=lambda case: case.name)
def test_a_cut_accuses_nobody_else(case: Case, tmp_path: Path) -> None:
    check(case, 1, tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize("case", samples.cases(), ids=lambda case: case.name)
def test_many_cuts_accuse_nobody_else(case: Case, tmp_path: Path) -> None:
    check(case, 24, tmp_path)


HEADS = {
    "sglang": "[2026-05-26 07:48:17 TP2] Scheduler hit an exception: Traceback (most recent call last):\n",
    "vllm": "ERROR 06-01 10:00:00 [multiproc_executor.py:559] WorkerProc hit an exception.\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("rest", ["", '  File "/srv/app/scheduler.py", line 22', "  File"])
def test_the_head_of_a_traceback_proves_nothing(tmp_path: Path, head: str, rest: str) -> None:
    """It says that something failed; the exception that the end of the log cuts off says what."""
    path = tmp_path / "input.log"
    path.write_text(head + rest, encoding="utf-8")
    found = analyze([str(path)])
    assert found.conclusion.confidence == "undecided"
    assert "only announces an exception" in found.conclusion.statement


def test_what_a_server_says_in_the_same_line_counts(tmp_path: Path) -> None:
    path = tmp_path / "input.log"
    path.write_text("[2026-05-26 07:48:17] Scheduler hit an exception: queue is gone\n", encoding="utf-8")
    found = analyze([str(path)])
    assert found.conclusion.confidence == "proven"
    assert found.conclusion.statement.endswith("hit an exception: queue is gone")


def test_an_op_log_that_breaks_off_early_names_no_launch(tmp_path: Path) -> None:
    """The debugger names the kernel; its launch can be behind the end of the log."""
    case = next(one for one in samples.cases() if one.name == "coredump/paged")
    part = analysed(case, content(case)[:21_743], tmp_path)
    assert part.conclusion.confidence == "proven"
    assert part.conclusion.statement.startswith("custom__paged_lookup caused")
    assert "breaks off" in " ".join(part.conclusion.notes)

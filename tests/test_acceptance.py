"""The findings of the samples hold whatever carried the log here, and for whatever part of it is left."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from analyzer.scoreboard import ACCUSING, Case, accused_suspect
from tests import oplog, samples
from tests.wrapping import ARCHIVES, ENVELOPES, woven

WITNESSES = ("max_ops", "max_errors", "max_modes", "coredump")
CASES = {case.name: case for case in samples.cases() if case.witness in WITNESSES}
DISTINCT = [name for name in CASES if name not in {"max_ops/paged_async_ir", "coredump/paged_log_only"}]
WITH_FAULT = [name for name, case in CASES.items() if case.expected.root is not None]
HEALTHY = "max_ops/clean_async"
CUTS = 20
SMALL = [
    name
    for name in WITH_FAULT
    if name not in {"max_ops/paged_async", "max_ops/paged_async_ir", "max_ops/paged_api_toggle"}
    and not name.startswith("coredump/paged")
]
every_case = pytest.mark.parametrize("name", CASES)
every_log = pytest.mark.parametrize("name", DISTINCT)  # the others analyse the log of one of these


@cache
def log_of(name: str) -> bytes:
    """The plain log of a case: its first input."""
    case = CASES[name]
    data = (case.folder / case.inputs[0]).read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


@cache
def lines_of(name: str) -> tuple[str, ...]:
    return tuple(log_of(name).decode().removesuffix("\n").split("\n"))


def analysed(case: Case, data: bytes, folder: Path, *, alone: bool = False) -> Result:
    """The case with ``data`` in place of its log; ``alone`` = without what lies beside the log."""
    path = folder / "serve.log"
    path.write_bytes(data)
    beside = [] if alone else case.paths()[1:]
    result = analyze([str(path), *beside], case.analysis_options(case.folder))
    counts = result.accounting
    parts = (counts.parsed, counts.continuation, counts.ignored, counts.unrecognised)
    assert min(parts) >= 0
    assert sum(parts) == counts.total_lines
    return result


def findings(result: Result) -> dict[str, object]:
    """What an engineer acts on. Line numbers count: every envelope keeps one line a line."""
    root = samples.root_fault(result)
    first = result.suspects[0] if result.suspects else None
    window = result.window
    return {
        "root": root and (root.kind, root.code, root.line, root.trust),
        "first suspect": first and (first.op.name, first.op.id, first.source[:1], first.share),
        "window": window and (window.size, window.size_outer, window.first_op.id, window.last_op.id),
        "begin": window and window.begin.line,
        "confidence": result.conclusion.confidence,
        "cleared": (result.cleared.count, [one.op.id for one in result.cleared.ops]),
        "ops": (result.timeline.ops, result.timeline.completed, result.timeline.steps),
    }


@every_case
@pytest.mark.parametrize("envelope", ENVELOPES)
def test_envelope_changes_no_finding(name: str, envelope: str, tmp_path: Path) -> None:
    """Kubernetes, docker or a coloured rank tag around every line; not one line is read differently."""
    wrapped = analysed(CASES[name], oplog.text(ENVELOPES[envelope](lines_of(name))), tmp_path)
    plain = samples.analysis(name)
    assert findings(wrapped) == findings(plain)
    assert wrapped.accounting == plain.accounting


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("name", ["max_errors/oob_async", "max_ops/paged_async", "max_modes/lowercase_level"])
def test_archive_changes_no_finding(name: str, archive: str, tmp_path: Path) -> None:
    wrapped = analysed(CASES[name], ARCHIVES[archive](log_of(name)), tmp_path)
    assert findings(wrapped) == findings(samples.analysis(name))
    assert wrapped.inputs[0].compression is not None


def test_envelope_of_an_envelope_inside_an_archive_changes_no_finding(tmp_path: Path) -> None:
    """A rank of torchrun in a pod, rotated and packed."""
    name = "max_errors/oob_async"
    lines = ENVELOPES["cri"](ENVELOPES["coloured rank"](lines_of(name)))
    wrapped = analysed(CASES[name], ARCHIVES["zst"](oplog.text(lines)), tmp_path)
    assert findings(wrapped) == findings(samples.analysis(name))


@pytest.mark.parametrize("failing_rank", [0, 1])
@pytest.mark.parametrize("name", WITH_FAULT)
def test_failing_rank_is_blamed_not_the_one_beside_it(name: str, failing_rank: int, tmp_path: Path) -> None:
    """Two tagged ranks line by line, one of them healthy."""
    ranks = [lines_of(HEALTHY), lines_of(name)]
    if failing_rank == 0:
        ranks.reverse()
    tags = ("[rank0]: ", "[rank1]: ")
    result = analysed(CASES[name], oplog.text(list(woven(*ranks, tags=tags))), tmp_path)
    alone = samples.analysis(name)
    root, expected = samples.root_fault(result), samples.root_fault(alone)
    assert root is not None
    assert expected is not None
    assert (root.kind, root.code, root.trust) == (expected.kind, expected.code, expected.trust)
    assert root.process == f"rank{failing_rank}"
    kept = ("first suspect", "window", "confidence")
    assert {key: findings(result)[key] for key in kept} == {key: findings(alone)[key] for key in kept}
    assert {one.op.process for one in result.suspects if one.op.id is not None} <= {root.process}


@pytest.mark.parametrize("order", ["healthy first", "failing first"])
@pytest.mark.parametrize("name", WITH_FAULT)
def test_untagged_writers_bring_no_wrong_accusation(name: str, order: str, tmp_path: Path) -> None:
    """Whose line is whose is a guess then: what the error text itself tells is kept, no more."""
    both = [lines_of(HEALTHY), lines_of(name)]
    if order == "failing first":
        both.reverse()
    result = analysed(CASES[name], oplog.text(list(woven(*both))), tmp_path)
    alone = samples.analysis(name)
    root, expected = samples.root_fault(result), samples.root_fault(alone)
    assert root is not None
    assert expected is not None
    assert (root.kind, root.code, root.trust) == (expected.kind, expected.code, expected.trust)
    accused, guilty = accused_suspect(result), CASES[name].expected.top
    if root.trust == "late":
        assert result.conclusion.confidence in {"ranked", "undecided"}
    if accused is not None and accused.op.id is not None:
        assert guilty is not None
        assert accused.op.name == guilty.name
    if guilty is not None and result.suspects:
        assert guilty.name in {one.op.name for one in result.suspects} or result.suspects[0].op.id is None


def test_value_printed_by_an_untagged_neighbour_clears_nobody(tmp_path: Path) -> None:
    """Whose device it shows to be sound is unknown (rule 4)."""
    case = CASES["max_ops/paged_async"]
    failing = list(lines_of("max_ops/paged_async"))
    at = next(number for number, line in enumerate(failing) if line.startswith("Traceback"))
    neighbour = lines_of(HEALTHY)
    mixed = [
        *woven(neighbour, failing[:at]), "step 3 logits 64.0000", *oplog.pair("softmax", 900), *failing[at:]
    ]  # fmt: skip
    result = analysed(case, oplog.text(mixed), tmp_path)
    assert result.conclusion.confidence in {"ranked", "undecided"}
    assert (302, "custom__paged_lookup") in {(one.op.id, one.op.name) for one in result.suspects}


def cuts(name: str) -> Iterator[int]:
    """Byte positions, the same in every run."""
    dice = random.Random(name)  # noqa: S311 (positions, not secrets)
    size = len(log_of(name))
    return (dice.randrange(1, size) for _ in range(CUTS))


@every_log
def test_cut_log_invents_no_fault_and_accuses_nobody_else(name: str, tmp_path: Path) -> None:
    """A fault of the rest is a fault of the whole, on the same line, and so is the accused op."""
    whole = analysed(CASES[name], log_of(name), tmp_path, alone=True)
    fault_lines = {line for fault in whole.faults for line in range(fault.line - 20, fault.last_line + 1)}
    guilty = accused_suspect(whole)
    for cut in cuts(name):
        rest = analysed(CASES[name], log_of(name)[:cut], tmp_path, alone=True)
        assert {fault.line for fault in rest.faults} <= fault_lines, cut
        accused = accused_suspect(rest)
        if rest.conclusion.confidence in ACCUSING and accused is not None:
            assert guilty is not None, (cut, accused.op)
            assert guilty.op.name.startswith(accused.op.name), (cut, accused.op)


@pytest.mark.parametrize("name", SMALL)
def test_cut_inside_the_error_text_accuses_nobody_else(name: str, tmp_path: Path) -> None:
    """What the lost rest of the text would have said is unknown: then nobody is accused, or the same op."""
    whole = samples.analysis(name)
    root, guilty = samples.root_fault(whole), accused_suspect(whole)
    assert root is not None
    assert root.byte_offset is not None
    data = log_of(name)
    reach = (110, 2_000)  # the cause line; the fusion tree and the stacks behind it
    dice = random.Random(name)  # noqa: S311 (positions, not secrets)
    for number in range(CUTS):
        cut = dice.randrange(root.byte_offset, min(root.byte_offset + reach[number % 2], len(data)))
        rest = analysed(CASES[name], data[:cut], tmp_path, alone=True)
        accused = accused_suspect(rest)
        if rest.conclusion.confidence not in ACCUSING or accused is None:
            continue
        if accused.op.name.startswith("producer of "):
            continue  # the checked value, not an op
        assert guilty is not None, (cut - root.byte_offset, accused.op)
        assert guilty.op.name.startswith(accused.op.name), (cut - root.byte_offset, accused.op)


@every_log
def test_timeline_of_a_cut_log_is_that_of_its_lines(name: str) -> None:
    """Each launch that is left keeps its line, id, name, and its completion if that is left too."""
    data = log_of(name)
    columns = ["launch_line", "id", "name", "completion_line", "body_last"]
    whole = oplog.timeline(data, marks=True).ops.select(columns).rows()
    for cut in cuts(name):
        full_lines = data[:cut].count(b"\n")
        rows = oplog.timeline(data[:cut], marks=True).ops.select(columns).rows()
        expected = [
            (*row[:3], *(line if line and line <= full_lines else None for line in row[3:]))
            for row in whole
            if row[0] <= full_lines
        ]
        assert [
            (*row[:3], *(line if line and line <= full_lines else None for line in row[3:]))
            for row in rows
            if row[0] <= full_lines
        ] == expected, cut
        assert all(row[0] == full_lines + 1 for row in rows[len(expected) :]), cut

"""Whatever becomes of a log: no crash, each line counted once, all reports can be written and read back."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from analyzer.report.build import ReportKind
from tests.fuzz import __main__ as command
from tests.fuzz.checks import check, parse_report
from tests.fuzz.corpus import corpus
from tests.fuzz.mutations import MUTATIONS, Mutation, cut, fuzz_input

INPUTS = 2_000  # `python -m tests.fuzz` runs 200,000
SHARDS = 16  # so that several workers share them
REPORTS_OF = 8  # all reports of every eighth input; the command writes them of all


@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutated_samples_give_a_sound_analysis_or_a_clear_refusal(shard: int, tmp_path: Path) -> None:
    """The same inputs in every run; ``python -m tests.fuzz --input NUMBER FILE`` writes one of them."""
    failed = {}
    for number in range(shard, INPUTS, SHARDS):
        reports = number // SHARDS % REPORTS_OF == 0
        outcome = check(fuzz_input(number, corpus()), tmp_path, reports=reports)
        if outcome.failure is not None:
            failed[number] = outcome.failure
    assert not failed


def test_an_input_is_the_same_whenever_it_is_made() -> None:
    """A number is all that has to be told of a failing input."""
    assert [fuzz_input(n, corpus()) for n in range(40)] == [fuzz_input(n, corpus()) for n in range(40)]


def test_small_samples_are_cut_behind_each_byte() -> None:
    """Each cut comes once before one comes again."""
    cuts = corpus().cuts()
    lengths = sorted(len(cut(n, corpus())) for n in range(cuts))
    assert lengths == sorted(n + 1 for sample in corpus().small() for n in range(len(sample)))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.__name__)
def test_mutation_takes_an_empty_file_too(mutation: Mutation) -> None:
    """A mutation before it can have taken all bytes."""
    assert all(isinstance(mutation(b"", Random(seed), corpus()), bytes) for seed in range(20))  # noqa: S311 (to be repeated)


def test_a_crash_is_found_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panic of a library is none of the exceptions that a program catches."""

    class PanicError(BaseException):
        pass

    def crash(_paths: list[str]) -> None:
        raise PanicError("oh")

    monkeypatch.setattr("tests.fuzz.checks.open_analysis", crash)
    failure = check(b"text\n", tmp_path).failure
    assert failure is not None
    assert (failure.stage, failure.text) == ("crash", "oh")
    assert failure.where.startswith("PanicError at ")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (ReportKind.html, b"<p><b>x</p>"),
        (ReportKind.html, b"<p>"),
        (ReportKind.json, b'{"schema_version": NaN}'),
        (ReportKind.json, b"{}"),
        (ReportKind.sarif, b"{}"),
        (ReportKind.junit, b"<a/>"),
        (ReportKind.perfetto, b"[]"),
        (ReportKind.markdown, b"\xff"),
    ],
)
def test_a_broken_report_is_found(kind: ReportKind, content: bytes) -> None:
    """Or the fuzzer could not fail for it."""
    with pytest.raises(Exception):  # noqa: B017, PT011 (whatever the parser of that kind raises)
        parse_report(kind, content)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--count", "6", "--processes", "1"]) == 0
    assert "inputs              6\n" in capsys.readouterr().out

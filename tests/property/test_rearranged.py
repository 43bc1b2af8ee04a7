"""Innocent lines, other times, pids and ranks, and lines moved beside those of others change no verdict."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from analyzer.scoreboard import Case
from tests import rearranged, samples


def inputs(case: Case) -> list[list[str]]:
    """The lines of each input."""
    raw = [Path(path).read_bytes() for path in case.paths()]
    plain = [gzip.decompress(one) if one[:2] == b"\x1f\x8b" else one for one in raw]
    return [one.decode("utf-8", "surrogateescape").split("\n") for one in plain]


def analysed(case: Case, texts: Sequence[Sequence[str]], folder: Path) -> Result:
    paths = []
    for name, lines in zip(case.inputs, texts, strict=True):
        path = folder / Path(name).name.removesuffix(".gz")
        path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
        paths.append(str(path))
    return analyze(paths, case.analysis_options(case.folder))


def verdict(result: Result) -> tuple[object, ...]:
    """Suspect, confidence and the text of the root."""
    root = samples.root_fault(result)
    first = next((one for one in result.suspects if one.rank == result.conclusion.suspect), None)
    suspect = first and (first.op.name, first.op.id)
    return (suspect, result.conclusion.confidence, root and (root.kind, root.text))


def innocent(case: Case, texts: list[list[str]], whole: Result) -> Iterator[list[list[str]]]:
    random = Random(zlib.crc32(case.name.encode()))  # noqa: S311 (to be repeated, not to be secret)
    faults = [one for one in whole.faults if one.input == 0]
    if "--window" not in case.options:  # it names lines
        yield [rearranged.with_innocent(texts[0], faults, random), *texts[1:]]


def moved(case: Case, texts: list[list[str]], whole: Result) -> Iterator[list[list[str]]]:
    faults = [one for one in whole.faults if one.input == 0]
    if len({key for key in rearranged.told(texts[0])["process"] if key}) > 1:
        for lines in (rearranged.gathered(texts[0], faults), rearranged.riffled(texts[0])):
            if lines != texts[0]:
                yield [lines, *texts[1:]]


Changed = Callable[[Case, list[list[str]], Result], Iterator[list[list[str]]]]
CHANGES: tuple[Changed, ...] = (innocent, moved)


def check_changes(case: Case, changes: Changed, folder: Path) -> None:
    whole = samples.analysis(case.name)
    for changed in changes(case, inputs(case), whole):
        assert verdict(analysed(case, changed, folder)) == verdict(whole)


def check_renamed(case: Case, folder: Path) -> None:
    texts, before = inputs(case), verdict(samples.analysis(case.name))
    rename = rearranged.renaming([line for lines in texts for line in lines])
    renamed = [[rename(line) for line in lines] for lines in texts]
    if renamed != texts:
        suspect, sure, root = verdict(analysed(case, renamed, folder))
        said = before[2] and (before[2][0], rename(before[2][1]))  # type: ignore[index]
        assert (suspect, sure, root) == (before[0], before[1], said)


def is_chosen(case: Case, part: int) -> bool:
    """One case in three, by a hash of its name."""
    return zlib.crc32(case.name.encode()) % 3 == part


def some(part: int) -> list[Case]:
    return [case for case in samples.cases() if is_chosen(case, part)]


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("case", some(0), ids=lambda case: case.name)
def test_another_order_changes_no_verdict(case: Case, changes: Changed, tmp_path: Path) -> None:
    check_changes(case, changes, tmp_path)


@pytest.mark.parametrize("case", some(1), ids=lambda case: case.name)
def test_other_numbers_change_no_verdict(case: Case, tmp_path: Path) -> None:
    check_renamed(case, tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("case", samples.cases(), ids=lambda case: case.name)
def test_every_order_changes_no_verdict(case: Case, changes: Changed, tmp_path: Path) -> None:
    check_changes(case, changes, tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize("case", samples.cases(), ids=lambda case: case.name)
def test_all_other_numbers_change_no_verdict(case: Case, tmp_path: Path) -> None:
    check_renamed(case, tmp_path)

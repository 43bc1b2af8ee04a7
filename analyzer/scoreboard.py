"""How good the analysis is on the sample logs: ``python -m analyzer.scoreboard [DIR] [--markdown]``.

A *false accusation* is the worst outcome and makes the exit code 1: somebody else than the guilty op is
accused, or anybody at all where the log cannot tell. ``DIR`` is laid out like ``sample_logs/``:
``<witness>/<case>/`` with ``input.log`` (or what ``case.json`` lists) and ``expected.json``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset

from analyzer.grammar import data_path
from analyzer.pipeline import Options, analyze
from analyzer.schema import CauseClass, Confidence, FaultKind, Result, Role, Suspect, Trust, Value

ACCUSING = frozenset({"proven", "confirmed", "likely"})  # words that make an engineer act on one name
SILENT = frozenset({"undecided", "none"})
TOP_N = 3


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what a case file states: a misspelt fact is an error, not a fact that is never compared."""


class ExpectedRoot(Fact, frozen=True, kw_only=True):
    """The root fault. A fact that ``expected.json`` leaves out is not compared; null is a fact."""

    kind: FaultKind
    code: int | Unset | None = UNSET
    line: int | Unset = UNSET
    trust: Trust | Unset = UNSET


class ExpectedOp(Fact, frozen=True, kw_only=True):
    """The guilty op; ``id`` null = no op record tells it."""

    name: str
    id: int | None


class ExpectedSource(Fact, frozen=True, kw_only=True):
    """The Python line that made the guilty op: base name of the file and line."""

    file: str
    line: int


class ExpectedWindow(Fact, frozen=True, kw_only=True):
    """First and last op id of the window, its size in records, and the line that proves its begin."""

    first: int
    last: int
    size: int
    after_line: int | Unset = UNSET


class ExpectedNanCheck(Fact, frozen=True, kw_only=True):
    """How many outputs the NaN check looked at, and of how many."""

    checked: int
    of: int


class ExpectedModes(Fact, frozen=True, kw_only=True):
    """Switches that the log shows."""

    device_sync_mode: bool | Unset | None = UNSET
    launch_blocking: bool | Unset | None = UNSET
    coredump: bool | Unset | None = UNSET
    nan_check: ExpectedNanCheck | Unset = UNSET


class Expected(Fact, frozen=True, kw_only=True):
    """Facts about one sample, written by hand from the known truth. What is left out is not compared."""

    root: ExpectedRoot | None
    top: ExpectedOp | None
    accuse: bool
    confidence_in: tuple[Confidence, ...]
    top_source: ExpectedSource | Unset = UNSET
    cleared_ids: tuple[int, ...] = ()
    window: ExpectedWindow | Unset | None = UNSET
    messenger: str | Unset | None = UNSET
    cause_class: CauseClass | Unset | None = UNSET
    next_step_contains: tuple[str, ...] = ()
    devices: list[str] | Unset = UNSET
    modes: ExpectedModes | Unset = UNSET
    roles: dict[int, Role] = {}  # of other faults, by the first line of their text


class CaseFile(Fact, frozen=True, kw_only=True):
    """``case.json``: inputs relative to the case, and the command line options that matter."""

    inputs: tuple[str, ...] = ("input.log",)
    options: tuple[str, ...] = ()


class Case(Value):
    """One sample: where it lies, what to read, what is known about it."""

    folder: Path
    witness: str
    inputs: tuple[str, ...]
    options: tuple[str, ...]
    expected: Expected

    @property
    def name(self) -> str:
        """``<witness>/<case>``."""
        return f"{self.witness}/{self.folder.name}"

    def paths(self) -> list[str]:
        """Inputs as paths that open from anywhere."""
        return [str(self.folder / item) for item in self.inputs]

    def analysis_options(self, base: Path) -> Options:
        """``options`` as the pipeline takes them, file names relative to ``base``."""
        parser = argparse.ArgumentParser(prog=f"options of {self.name}", exit_on_error=False)
        parser.add_argument("--ir", type=Path, action="append", default=[])
        parser.add_argument("--window", default=None, metavar="FIRST:LAST")
        parser.add_argument("--process", default=None)
        given = parser.parse_args(self.options)
        first, _, last = (given.window or "").partition(":")
        window = (int(first), int(last)) if given.window else None
        return Options(ir=tuple(base / path for path in given.ir), window=window, process=given.process)


class Score(Value):
    """Counts over some cases. ``guilty`` = cases where an op is known to be guilty."""

    cases: int = 0
    guilty: int = 0
    top_1: int = 0
    top_3: int = 0
    false_accusations: int = 0
    undecided: int = 0
    undecided_rightly: int = 0

    def __add__(self, other: Score) -> Score:
        """Sum of two scores, count by count."""
        names = self.__struct_fields__
        return Score(**{name: getattr(self, name) + getattr(other, name) for name in names})


def load_case(folder: Path) -> Case:
    """Read one case folder.

    Raises:
        OSError: ``expected.json`` is missing.
        msgspec.ValidationError: A file states a fact that is not in the vocabulary.
    """
    listed = folder / "case.json"
    case = msgspec.json.decode(listed.read_bytes(), type=CaseFile) if listed.exists() else CaseFile()
    expected = msgspec.json.decode((folder / "expected.json").read_bytes(), type=Expected)
    return Case(
        folder=folder,
        witness=folder.parent.name,
        inputs=case.inputs,
        options=case.options,
        expected=expected,
    )


def load_cases(root: Path) -> list[Case]:
    """All cases under ``root``, by witness and name."""
    return [load_case(path.parent) for path in sorted(root.glob("*/*/expected.json"))]


def score(expected: Expected, result: Result) -> Score:
    """Judge one analysis against what is known."""
    top = expected.top
    ranked = sorted(result.suspects, key=lambda suspect: suspect.rank)
    places = [place for place, one in enumerate(ranked[:TOP_N]) if top and is_op(one, top)]
    undecided = result.conclusion.confidence == "undecided"
    return Score(
        cases=1,
        guilty=int(top is not None),
        top_1=int(places[:1] == [0]),
        top_3=int(bool(places)),
        false_accusations=int(is_false_accusation(expected, result)),
        undecided=int(undecided),
        undecided_rightly=int(undecided and "undecided" in expected.confidence_in),
    )


def is_false_accusation(expected: Expected, result: Result) -> bool:
    """Whether an innocent op, or any op where the log cannot tell, is put forward."""
    accused = accused_suspect(result)
    confidence = result.conclusion.confidence
    if not expected.accuse:
        return accused is not None and confidence not in SILENT
    if expected.top is None or confidence not in ACCUSING:
        return False
    return accused is not None and not is_op(accused, expected.top)


def accused_suspect(result: Result) -> Suspect | None:
    """The suspect that the conclusion points at."""
    rank = result.conclusion.suspect
    return next((one for one in result.suspects if one.rank == rank), None)


def is_op(suspect: Suspect, op: ExpectedOp) -> bool:
    """Whether a suspect is that op: same name and same id."""
    return suspect.op.name == op.name and suspect.op.id == op.id


def score_all(cases: Iterable[Case]) -> dict[str, Score]:
    """Analyse every case; one score a witness and ``total`` at the end."""
    scores: dict[str, Score] = {}
    for case in cases:
        result = analyze(case.paths(), case.analysis_options(case.folder))
        scores[case.witness] = scores.get(case.witness, Score()) + score(case.expected, result)
    scores["total"] = sum(scores.values(), start=Score())
    return scores


HEADERS = ("witness", "cases", "top-1", "top-3", "false accusations", "undecided")


def table(scores: dict[str, Score]) -> list[tuple[str, ...]]:
    """Rows of text under ``HEADERS``: hits are ``hit/guilty``, undecided is ``rightly/all``."""
    return [
        (
            name,
            str(one.cases),
            f"{one.top_1}/{one.guilty}",
            f"{one.top_3}/{one.guilty}",
            str(one.false_accusations),
            f"{one.undecided_rightly}/{one.undecided} rightly",
        )
        for name, one in scores.items()
    ]


def render_text(rows: Sequence[Sequence[str]]) -> str:
    """A table in aligned columns: names to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in (HEADERS, *rows)) for column in range(len(HEADERS))]
    lines = []
    for row in (HEADERS, *rows):
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells))
    return "\n".join(lines)


def render_markdown(rows: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table."""
    rule = ["---", *("---:" for _ in HEADERS[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (HEADERS, rule, *rows))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the score board; 1 = there is a false accusation, 2 = there are no cases."""
    parser = argparse.ArgumentParser(prog="python -m analyzer.scoreboard", description=__doc__)
    parser.add_argument("dir", nargs="?", type=Path, help="cases (default: the shipped sample logs)")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    given = parser.parse_args(argv)
    root = given.dir or data_path("sample_logs")
    cases = load_cases(root)
    if not cases:
        print(f"no case under {root}: a case is <witness>/<case>/expected.json", file=sys.stderr)
        return 2
    scores = score_all(cases)
    rows = table(scores)
    print(render_markdown(rows) if given.markdown else render_text(rows))
    return int(scores["total"].false_accusations > 0)


if __name__ == "__main__":
    raise SystemExit(main())

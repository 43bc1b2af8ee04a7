"""More processes or texts than can be kept are counted, and the result says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from analyzer import readings
from analyzer.ingest import load as loading
from analyzer.ingest.crowd import first_and_last, largest
from analyzer.pipeline import analyze
from analyzer.schema import Result
from tests.measured import analysed

ERROR = "RuntimeError: CUDA error: an illegal memory access was encountered"
LINES: dict[str, Callable[[int], str]] = {
    "faults": lambda n: f"{ERROR} {n}",
    "pids": lambda n: f"(EngineCore_DP0 pid={n + 1}) {ERROR}",
    "ranks": lambda n: f"[rank{n}]: {ERROR}",
    "op_names": lambda n: f"[OP] LAUNCH op_{n} [id={n}] target=gpu:0",
    "op_pids": lambda n: f"(EngineCore_DP0 pid={n + 1}) [OP] LAUNCH matmul [id={n}] target=gpu:0",
    "lost": lambda n: f"node-3:1:1 [2] NCCL WARN unheard of {n}",
}
LIMIT = 20


def written(path: Path, kind: str, count: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{LINES[kind](n)}\n" for n in range(count))
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits as small as the logs."""
    monkeypatch.setattr(readings, "MAX_TEXTS", LIMIT)
    monkeypatch.setattr(loading, "MAX_PROCESSES", LIMIT)


def read(path: Path) -> Result:
    result = analyze([str(path)])
    counted = result.accounting
    sums = counted.parsed + counted.continuation + counted.ignored + counted.unrecognised
    assert sums == counted.total_lines
    return result


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["faults", "pids", "ranks", "op_pids", "lost"])
def test_what_is_beyond_the_limit_is_counted_and_said(tmp_path: Path, kind: str) -> None:
    """A line that is not kept is a counted loss and has an owner; the note stands by the input."""
    result = read(written(tmp_path / "serve.log", kind, 3 * LIMIT))
    (note,) = [note for note in result.inputs[0].notes if "counted, not read" in note]
    assert f"({2 * LIMIT} lines, from line " in note
    assert result.losses[0].count == 2 * LIMIT
    assert result.losses[0].why in note
    assert result.accounting.unrecognised >= 2 * LIMIT


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", LINES)
def test_nothing_is_said_up_to_the_limit(tmp_path: Path, kind: str) -> None:
    result = read(written(tmp_path / "serve.log", kind, LIMIT))
    assert not any("counted, not read" in note for note in result.inputs[0].notes)


@pytest.mark.usefixtures("small")
def test_first_and_last_faults_are_kept(tmp_path: Path) -> None:
    result = read(written(tmp_path / "serve.log", "pids", 3 * LIMIT))
    assert [fault.line for fault in result.faults] == [*range(1, 11), *range(51, 61)]


@pytest.mark.usefixtures("small")
def test_op_names_have_no_limit(tmp_path: Path) -> None:
    """They are columns."""
    result = read(written(tmp_path / "serve.log", "op_names", 3 * LIMIT))
    assert (result.timeline.names, result.accounting.parsed) == (3 * LIMIT, 3 * LIMIT)


def test_repeats_of_a_kept_text_are_kept() -> None:
    texts = ["a", "b", "a", "c", "d", "c", "e", "a"]
    frame = pl.DataFrame({"line": range(1, 9), "text": texts, "process": ""})
    assert first_and_last(frame, 3)["text"].to_list() == ["a", "a", "d", "e", "a"]
    assert first_and_last(frame, 5).height == 8


def test_the_same_text_of_another_process_is_another() -> None:
    frame = pl.DataFrame({"line": range(1, 5), "text": "a", "process": ["p", "q", "r", "p"]})
    assert first_and_last(frame, 2)["line"].to_list() == [1, 3, 4]


def test_processes_with_most_ops_are_kept() -> None:
    ops = pl.DataFrame({"line": range(1, 8), "process": list("pqrqrsr")})
    assert largest(ops, 2)["line"].to_list() == [2, 3, 4, 5, 7]
    assert largest(ops, 4).height == 7


@pytest.mark.heavy
@pytest.mark.parametrize("kind", LINES)
def test_a_million_of_a_kind_stay_within_time_and_memory(tmp_path: Path, kind: str) -> None:
    """60 s and 2 GB."""
    run = analysed(written(tmp_path / f"{kind}.log", kind, 1_000_000), tmp_path)
    counted = run.result["accounting"]
    assert counted["total_lines"] == 1_000_000
    assert counted["parsed"] + counted["unrecognised"] == 1_000_000
    assert run.memory_bytes < 2_000_000_000
    assert run.wall_s < 60

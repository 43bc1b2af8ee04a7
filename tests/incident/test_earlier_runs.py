"""A log that goes on after a restart holds several incidents; the last one is told about."""

from __future__ import annotations

from pathlib import Path

from analyzer.pipeline import analyze
from analyzer.schema import Result
from tests.samples import cases


def _text(name: str) -> str:
    """The log of a sample, plain."""
    case = next(case for case in cases() if case.name == name)
    return (case.folder / case.inputs[0]).read_text()


def _roles(result: Result) -> list[tuple[str, str]]:
    return [(fault.kind, fault.role) for fault in result.faults]


def _analysed(folder: Path, *texts: str) -> Result:
    log = folder / "serve.log"
    log.write_text("".join(texts))
    return analyze([str(log)])


def test_a_crash_after_a_restart_is_no_cascade_of_the_one_before(tmp_path: Path) -> None:
    """A sticky error ends with its process; the exact report of the second run stays exact."""
    late, exact = _text("max_errors/oob_async"), _text("max_errors/oob_sync")
    result = _analysed(tmp_path, late, exact)
    assert _roles(result) == [("illegal_address", "bystander"), ("illegal_address", "root")]
    assert result.conclusion.confidence == "proven"
    assert "earlier crash" in " ".join(result.conclusion.notes)
    alone = _analysed(tmp_path, exact)
    assert result.suspects[0].op.name == alone.suspects[0].op.name
    assert result.suspects[0].op.id == alone.suspects[0].op.id


def test_a_sound_run_after_a_crash_leaves_the_crash_the_root(tmp_path: Path) -> None:
    late, sound = _text("max_errors/oob_async"), _text("max_ops/clean_async")
    result = _analysed(tmp_path, late, sound)
    assert _roles(result) == [("illegal_address", "root")]
    assert result.suspects[0].op.name == "custom__strided_gather"


def test_two_errors_of_one_run_stay_one_incident(tmp_path: Path) -> None:
    late = _text("max_errors/oob_async")
    block = late[late.index("Traceback") :]
    result = _analysed(tmp_path, late, block)
    assert [role for _, role in _roles(result)].count("root") == 1
    assert "earlier crash" not in " ".join(result.conclusion.notes)

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import ReplaySetupError
from analyzer.pipeline import Options
from analyzer.replay import state
from tests.replay.results import log


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_the_last_analysis_of_a_directory_comes_back_with_absolute_paths(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    for folder in (work, other):
        folder.mkdir()
    assert state.save_last(work, ["serve.log", "-"], log(), ["python", "serve.py"])
    last = state.load_last(work)
    assert last.inputs == [str(work / "serve.log"), "-"]
    assert last.result == log()
    assert list(work.iterdir()) == []  # nothing is written beside the log
    with pytest.raises(ReplaySetupError, match="no analysis was made in"):
        state.load_last(other)


def test_the_program_of_the_last_replay_is_remembered_over_new_analyses(tmp_path: Path) -> None:
    state.save_last(tmp_path, ["a.log"], log(), ["python", "serve.py"])
    state.save_last(tmp_path, ["b.log"], log())
    last = state.load_last(tmp_path)
    assert last.command == ("python", "serve.py")


def test_how_the_analysis_was_asked_for_is_remembered(tmp_path: Path) -> None:
    options = Options(ir=(Path("decoder.mojo"),), window=(3, 9), process="rank0")
    state.save_last(tmp_path, ["serve.log"], log(), options=options)
    last = state.load_last(tmp_path)
    assert (last.ir, last.window, last.process) == ((str(tmp_path / "decoder.mojo"),), (3, 9), "rank0")


def test_nothing_to_replay_says_exactly_what_to_give() -> None:
    error = state.nothing_to_replay(["serve.log"], ["matmul: no operands"])
    assert error.exit_code == 5
    for part in (
        "matmul: no operands",
        "trace-analyze serve.log --replay -- python serve.py",
        "trace-analyze record --for torch",
        "--replay-inputs",
        "--ir",
    ):
        assert part in str(error)


def test_a_state_file_of_another_version_counts_as_none(tmp_path: Path) -> None:
    state.save_last(tmp_path, ["serve.log"], log())
    (file,) = (state.state_folder() / "last").iterdir()
    file.write_bytes(b'{"cwd": 1}')
    with pytest.raises(ReplaySetupError):
        state.load_last(tmp_path)


def test_a_state_directory_that_cannot_be_written_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert not state.save_last(tmp_path, ["serve.log"], log())

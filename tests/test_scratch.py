"""One owner of what a run makes: gone at every end, kept once it was told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import scratch
from analyzer.errors import OutputError
from analyzer.replay.run_folder import run_folder


def test_a_scratch_folder_is_closed_to_others_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def fail() -> None:
        with scratch.scratch_folder() as folder:
            assert folder.parent == tmp_path
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "a").mkdir()
            (folder / "a/b").write_text("x")
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_the_first_place_that_can_be_written_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    with scratch.scratch_folder() as folder:
        assert folder.parent == tmp_path


def test_no_place_at_all_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setattr(scratch, "_place", lambda: tmp_path / "missing")
    with pytest.raises(OutputError, match="TMPDIR names another place"), scratch.scratch_folder():
        pass


def test_an_unfinished_file_takes_its_place_at_once_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250)
    target.write_text("old")

    def fail() -> None:
        with scratch.unfinished_file(target) as file:
            file.write_text("half")
            assert target.read_text() == "old"
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert [one.name for one in tmp_path.iterdir()] == [target.name]
    with scratch.unfinished_file(target) as file:
        file.write_text("new")
    assert target.read_text() == "new"
    assert [one.name for one in tmp_path.iterdir()] == [target.name]


def test_what_is_left_at_the_end_is_removed_and_what_was_told_of_stays(tmp_path: Path) -> None:
    with run_folder(tmp_path) as told:
        (told / "1-blocking.log").write_text("x")
    scratch.keep_told()
    with run_folder(tmp_path) as silent:
        pass
    with scratch.owned(tmp_path / "file") as file:
        file.write_text("x")
        scratch.remove_all()
        assert not file.exists()
    assert told.exists()
    assert not silent.exists()


def test_a_replay_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="boom"), run_folder(tmp_path):
        raise ValueError("boom")
    assert list(tmp_path.iterdir()) == []

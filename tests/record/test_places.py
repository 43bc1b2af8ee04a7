"""What a recording finds where it writes: the inputs of the one before, or a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import UsageError
from analyzer.record.ops.watch import OpsWatch
from analyzer.record.rotate import LogFile
from analyzer.record.wrapper import RecordOptions, record


def test_the_inputs_of_the_recording_before_stand_beside_its_rotated_log(tmp_path: Path) -> None:
    inputs = tmp_path / "serve.log.inputs"
    inputs.mkdir()
    (inputs / "7.safetensors").write_bytes(b"x")
    OpsWatch(tmp_path / "serve.log.ops", inputs).prepare()
    assert not inputs.exists()
    assert (tmp_path / "serve.log.1.inputs/7.safetensors").read_bytes() == b"x"


def test_a_folder_is_never_moved_aside_for_a_log(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        record(["true"], RecordOptions(output=folder, quiet=True))
    assert [one.name for one in tmp_path.iterdir()] == ["logs"]


def test_what_earlier_recordings_left_is_never_removed(tmp_path: Path) -> None:
    """Rings of killed recorders and inputs of older logs may be all that is left of a crash."""
    rings, inputs = tmp_path / "n.log.ops", tmp_path / "n.log.inputs"
    for number in range(3):
        for folder in (rings, inputs):
            folder.mkdir(exist_ok=True)
            (folder / f"{number}.ring").write_text("")
        OpsWatch(rings, inputs).prepare()
    assert sorted(one.name for one in tmp_path.rglob("*.ring")) == sorted(f"{n}.ring" for n in (0, 1, 2) * 2)
    assert list(rings.iterdir()) == []


def _log(path: Path, keep: int) -> LogFile:
    return LogFile(path, max_bytes=None, keep=keep, header=lambda _: b"t stderr F [RECORD] START x\n")


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_a_file_that_is_no_recording_does_not_fall_out_of_the_rotation(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "model.py"
    path.write_text("weights = 1\n")
    for _ in range(5):
        _log(path, keep).close()
    texts = [one.read_text() for one in tmp_path.iterdir()]
    assert texts.count("weights = 1\n") == 1
    assert len(texts) <= keep + 2


def test_a_log_that_is_being_recorded_is_not_recorded_again(tmp_path: Path) -> None:
    path = tmp_path / "serve.log"
    first = _log(path, 5)
    with pytest.raises(UsageError, match="another recording is writing"):
        _log(path, 5)
    first.close()
    _log(path, 5).close()
    assert {one.name for one in tmp_path.iterdir()} == {"serve.log", "serve.log.1"}

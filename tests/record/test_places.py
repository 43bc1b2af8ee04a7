"""What a recording finds where it writes: the inputs of the one before, or a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import UsageError
from analyzer.record.ops.watch import OpsWatch
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

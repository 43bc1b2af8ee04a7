"""Saved inputs belong to their log: recording again moves both aside."""

from __future__ import annotations

from pathlib import Path

from analyzer.record.ops.watch import OpsWatch


def test_the_inputs_of_the_recording_before_stand_beside_its_rotated_log(tmp_path: Path) -> None:
    inputs = tmp_path / "serve.log.inputs"
    inputs.mkdir()
    (inputs / "7.safetensors").write_bytes(b"x")
    OpsWatch(tmp_path / "serve.log.ops", inputs).prepare()
    assert not inputs.exists()
    assert (tmp_path / "serve.log.1.inputs/7.safetensors").read_bytes() == b"x"

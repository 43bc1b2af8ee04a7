"""Saved inputs beside a log."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.replay.planning.captures import pid_at, read_safetensors
from tests.replay.planning.recorded import LOG, copy_with_inputs, plan_of, tensor

_INDICES = [65, 1000, *range(100, 126)]


def test_saved_values_are_recorded_inputs_of_their_op(tmp_path: Path) -> None:
    log = copy_with_inputs(tmp_path, _INDICES)
    plan = plan_of(log)
    indices = tensor(plan.ops[0], "indices")
    assert (indices.fidelity, indices.key, indices.extent) == ("recorded", "indices", 1000)
    assert indices.file is not None
    assert Path(indices.file).is_absolute()
    assert plan.material == ("types", "capture")
    assert plan.ops[0].fidelity() == "recorded"


def test_a_tensor_above_the_limit_of_the_recorder_has_its_range(tmp_path: Path) -> None:
    indices = tensor(plan_of(copy_with_inputs(tmp_path, [])).ops[0], "indices")
    assert (indices.fidelity, indices.low, indices.high, indices.file) == ("statistics", 65, 1000, None)


def test_a_file_of_another_op_is_of_another_run(tmp_path: Path) -> None:
    log = copy_with_inputs(tmp_path, _INDICES, op="aten::gather")
    assert tensor(plan_of(log).ops[0], "indices").fidelity == "statistics"


def test_a_file_of_another_process_is_not_taken(tmp_path: Path) -> None:
    log = copy_with_inputs(tmp_path, _INDICES)
    folder = tmp_path / "serve.log.inputs"
    next(folder.iterdir()).rename(folder / "77-142.safetensors")
    assert tensor(plan_of(log).ops[0], "indices").fidelity == "statistics"


def test_a_folder_of_another_name_is_given_as_material(tmp_path: Path) -> None:
    log = copy_with_inputs(tmp_path, _INDICES)
    moved = tmp_path / "elsewhere"
    shutil.move(tmp_path / "serve.log.inputs", moved)
    assert tensor(plan_of(log).ops[0], "indices").fidelity == "statistics"
    assert tensor(plan_of(log, moved).ops[0], "indices").fidelity == "recorded"


def test_ops_belong_to_the_block_that_they_stand_in() -> None:
    blocks = [(5, 11), (90, 22)]
    assert [pid_at(blocks, line) for line in (3, 6, 91)] == [None, 11, 22]


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"a": 1},
        {"a": {"dtype": "I64", "shape": ["x"]}},
        {"__metadata__": [1]},
        {"a": {"shape": [1 << 70], "dtype": 3}},
    ],
)
def test_a_header_of_another_form_holds_nothing(tmp_path: Path, header: object) -> None:
    text = json.dumps(header).encode()
    path = tmp_path / "1-1.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    assert read_safetensors(path) == ({}, {})


@settings(deadline=None)  # it writes files, on machines that are busy
@given(data=st.binary(max_size=80))
def test_no_bytes_make_the_reader_fail(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(data)
    tensors, metadata = read_safetensors(path)
    assert isinstance(tensors, dict)
    assert isinstance(metadata, dict)


def test_the_recording_itself_stands_without_inputs() -> None:
    assert tensor(plan_of(LOG).ops[0], "indices").file is None

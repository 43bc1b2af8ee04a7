"""Dumps of FlashInfer's flight recorder, in the form that ``flashinfer/api_logging.py`` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.replay.plan import Plan, read_plan, write_plan
from analyzer.replay.planning.flashinfer import CALLS_SHOWN
from tests.replay.planning.recorded import LOG, argument, plan_of, tensor

_TENSOR = {"shape": [2, 8], "dtype": "torch.bfloat16", "stride": [8, 1], "device": "cpu"}


def dump(root: Path, number: int, *, function: str = "single_decode", **more: Any) -> Path:
    """One call: q, a list with a tensor, an optional type and a number."""
    folder = root / f"20260430_10152{number % 10}_{number:03d}_pid77_{function}_call{number:04d}"
    folder.mkdir(parents=True)
    record = {
        "function_name": function,
        "module": "flashinfer.decode",
        "call_sequence": number,
        "process_id": 77,
        "input_metadata": {
            "arg_1": {"type": "tuple", "length": 1, "items": [{"type": "torch.Tensor"}], "truncated": False},
            "kwarg_sm_scale": 0.125,
            "kwarg_q_dtype": {"type": "torch.dtype", "value": "torch.bfloat16"},
            "kwarg_window": None,
        },
        "tensor_info": {
            "input_tensor_keys": ["arg_0", "arg_1__0", "kwarg_indices"],
            "output_tensor_keys": ["result"],
        },
        "tensor_details": {
            "arg_0": _TENSOR,
            "arg_1__0": _TENSOR,
            "kwarg_indices": {**_TENSOR, "dtype": "torch.int32"},
            "result": _TENSOR,
        },
        "execution_status": "inputs_saved",
        **more,
    }
    (folder / "metadata.jsonl").write_text(json.dumps(record) + '\n{"function_na', encoding="utf-8")
    (folder / "inputs.pt").write_bytes(b"")
    return folder


def calls(*materials: Path) -> Plan:
    return plan_of(LOG, *materials)


def test_a_dumped_call_is_a_call_of_its_function(tmp_path: Path) -> None:
    folder = dump(tmp_path, 1)
    plan = calls(tmp_path)
    op = plan.ops[-1]
    assert (op.call, op.executor, op.why_not) == ("flashinfer.decode.single_decode", "user", None)
    assert [one.name for one in op.arguments] == ["arg0", "arg1", "sm_scale", "q_dtype", "window", "indices"]
    query = tensor(op, "arg0")
    assert (query.shape, query.dtype, query.device) == ((2, 8), "bfloat16", "cuda:0")
    assert (query.fidelity, query.file, query.key) == ("recorded", str(folder / "inputs.pt"), "arg_0")
    several = argument(op, "arg1").tensors
    assert several is not None
    assert [one and one.key for one in several] == ["arg_1__0"]
    assert (argument(op, "sm_scale").value, argument(op, "q_dtype").text) == (0.125, "torch.bfloat16")
    assert [one.shape for one in op.outputs] == [(2, 8)]
    assert "flashinfer_dump" in plan.material


def test_calls_stand_in_order_of_time_behind_the_ops_of_the_log(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        dump(tmp_path, number)
    plan = calls(tmp_path)
    assert [op.number for op in plan.ops] == [0, 1, 2, 3]
    assert plan.ops[0].name == "aten::embedding"
    files = [tensor(op, "arg0").file for op in plan.ops[1:]]
    assert files == sorted(str(file) for file in files)
    assert any("order" in note for note in plan.notes)


def test_only_the_last_calls_are_taken_and_it_is_said(tmp_path: Path) -> None:
    for number in range(CALLS_SHOWN + 3):
        dump(tmp_path, number)
    plan = calls(tmp_path)
    assert len(plan.ops) == 1 + CALLS_SHOWN
    assert any(note.startswith("3 earlier") for note in plan.notes)


def test_a_single_folder_can_be_given(tmp_path: Path) -> None:
    assert len(calls(dump(tmp_path, 1)).ops) == 2


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"self_id": 5}, "object"),
        ({"module": ""}, "metadata.jsonl"),
        ({"input_metadata": {"arg_0": {"type": "Thing", "repr": "<Thing>"}}}, "arg0"),
        ({"tensor_details": {}}, "arg_0"),
    ],
)
def test_what_the_dump_does_not_hold_is_told(tmp_path: Path, more: dict[str, Any], word: str) -> None:
    dump(tmp_path, 1, **more)
    op = calls(tmp_path).ops[-1]
    assert op.why_not is not None
    assert word in op.why_not
    assert op.arguments == ()


def test_inputs_that_were_never_written_are_told(tmp_path: Path) -> None:
    (dump(tmp_path, 1) / "inputs.pt").unlink()
    assert "not in the dump" in (calls(tmp_path).ops[-1].why_not or "")


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"tensor_info": 3, "input_metadata": [1], "module": "m"}'])
def test_a_damaged_record_makes_no_plan_fail(tmp_path: Path, text: str) -> None:
    folder = dump(tmp_path, 1)
    (folder / "metadata.jsonl").write_text(text, encoding="utf-8")
    op = calls(tmp_path).ops[-1]
    assert op.arguments == ()


def test_a_link_out_of_the_dump_is_not_followed(tmp_path: Path) -> None:
    """A dump may be a stranger's: it is read, and nothing beside it."""
    outside = dump(tmp_path / "other", 1)
    given = tmp_path / "given"
    given.mkdir()
    (given / "linked").symlink_to(outside, target_is_directory=True)
    (given / "loop").symlink_to(given / "loop")
    assert len(calls(given).ops) == 1
    inside = dump(given, 2)
    (inside / "inputs.pt").unlink()
    (inside / "inputs.pt").symlink_to(outside / "inputs.pt")
    assert "not in the dump" in (calls(given).ops[-1].why_not or "")


@pytest.mark.parametrize(
    "more",
    [
        '"input_metadata": {"arg_0": 1e999}',
        f'"input_metadata": {{"arg_0": {"9" * 300}}}',
        f'"input_metadata": {{"arg_{"9" * 5000}": 1}}',
        (
            '"tensor_info": {"input_tensor_keys": ["arg_0"]}, "tensor_details": {"arg_0": '
            '{"shape": [1e999], "stride": [1], "dtype": "x"}}'
        ),
        '"input_metadata": {"arg_0": "\\ud800"}',
        f'"input_metadata": {"[" * 100_000}',
    ],
)
def test_values_that_nothing_can_hold_make_no_plan_fail(tmp_path: Path, more: str) -> None:
    folder = dump(tmp_path, 1)
    text = f'{{"module": "flashinfer.norm", "function_name": "f", {more}}}\n'
    (folder / "metadata.jsonl").write_text(text, encoding="utf-8")
    write_plan(calls(tmp_path), tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json").ops

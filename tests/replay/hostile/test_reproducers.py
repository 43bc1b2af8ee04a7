"""Plans, dumps and logs of strangers on the command line: nothing runs that was not asked for."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from analyzer.replay.run_folder import KEPT, run_folder
from tests.replay.test_op_replay_cli import cli
from tests.replay.worker.jobs import indices, op, run_here, tensor

NO_OPS = """Traceback (most recent call last):
  File "/srv/serve.py", line 12, in <module>
    x.cpu()
RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be \
incorrect.
"""
EMBEDDING = """[OP] LAUNCH aten::embedding [id=3] \
target=cuda:0;weight=4x2xfloat32;indices=1xint64;indices.min=0;indices.max=99
[OP] COMPLETE aten::embedding [id=3] target=cuda:0
"""
WEIGHT = {"name": "weight", "tensor": {"shape": [4, 2], "dtype": "float32", "device": "cpu"}}
BAD = {"shape": [1], "dtype": "int64", "device": "cpu", "fidelity": "recorded", "values": [99], "extent": 4}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "serve.log"
    path.write_text(NO_OPS)
    return path


def plan_of(path: Path, *ops: dict[str, Any]) -> None:
    whole = [{"number": number, **one} for number, one in enumerate(ops)]
    path.write_text(json.dumps({"version": "1", "log": None, "material": [], "notes": [], "ops": whole}))


@pytest.mark.parametrize(
    ("calls", "wanted"),
    [(("os.system", "subprocess.getoutput", "builtins.eval"), 5), (("flashinfer.os.system",), 0)],
)
def test_a_plan_calls_nothing_but_the_users_functions_and_flashinfers(
    tmp_path: Path, log: Path, calls: tuple[str, ...], wanted: int
) -> None:
    shell = {"name": "arg0", "value": f"touch {tmp_path}/MARK"}
    plan_of(
        tmp_path / "p.json",
        *({"name": "harmless", "executor": "user", "call": call, "arguments": [shell]} for call in calls),
    )
    code, out, err = cli(tmp_path, log.name, "--replay", "--plan", "p.json", "--format", "json")
    assert not (tmp_path / "MARK").exists()
    told = f"without a file of functions nothing executes {calls[0]}"
    assert (code, told in out + err) == (wanted, True), (out, err)


def test_a_dump_calls_nothing_but_flashinfers_functions(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "dump" / "20250101_pid1_system_call1"
    folder.mkdir(parents=True)
    record = {
        "module": "os", "function_name": "system", "input_metadata": {"arg_0": f"touch {tmp_path}/MARK"},
        "tensor_info": {"input_tensor_keys": []}, "tensor_details": {},
    }  # fmt: skip
    (folder / "metadata.jsonl").write_text(json.dumps(record) + "\n")
    code, _, err = cli(tmp_path, log.name, "--replay", "--replay-inputs", "dump")
    assert not (tmp_path / "MARK").exists()
    assert (code, "os.system is no function of FlashInfer" in err) == (5, True), err


def test_an_import_of_the_users_file_is_no_function_of_it(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("from os import system\ndef lookup(x): return x\n")
    ran = run_here(
        tmp_path,
        [op("system", executor="user", arguments={"arg0": f"touch {tmp_path}/MARK"})],
        user_ops=str(mine),
    )
    assert "mine.py has no system" in (ran.first("skipped").why or "")
    assert not (tmp_path / "MARK").exists()


FLASHINFER = """
import os
from os import system
def flashinfer_api(func=None, trace=None):
    return func if func is not None else (lambda one: one)
@flashinfer_api
def decode(q, layout="NHD"): return q
@flashinfer_api(trace=None)
def prefill(q): return q
def build(command): os.system(command)
"""


def test_of_flashinfer_only_what_it_dumps_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    package = tmp_path / "lib" / "flashinfer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "decode.py").write_text(FLASHINFER)
    monkeypatch.syspath_prepend(package.parent)
    for name in [one for one in sys.modules if one.partition(".")[0] == "flashinfer"]:
        monkeypatch.delitem(sys.modules, name)
    value = tensor(2)
    command = f"touch {tmp_path}/MARK"
    ops = [
        op("flashinfer.decode.decode", 0, executor="user", arguments={"arg0": value, "layout": "HND"}),
        op("flashinfer.decode.prefill", 1, executor="user", arguments={"arg0": value}),
        op("flashinfer.decode.build", 2, executor="user", arguments={"arg0": command}),
        op("flashinfer.decode.system", 3, executor="user", arguments={"arg0": command}),
        op("flashinfer.decode.os.system", 4, executor="user", arguments={"arg0": command}),
        op("flashinfer.decode.decode", 5, executor="user", arguments={"arg0": "../secret"}),
    ]
    ran = run_here(tmp_path, ops)
    assert [one.number for one in ran.journal.of("done")] == [0, 1]
    assert [one.number for one in ran.journal.of("skipped")] == [2, 3, 4, 5]
    assert not (tmp_path / "MARK").exists()


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("aten::from_file", {"filename": "MARK", "shared": "True", "size": "64"}),
        ("aten::save", {"item": tensor(4), "filename": "MARK"}),
        ("aten::warn", {"message": "x", "stacklevel": "1"}),
        ("aten::set_.source_Storage", {"self": tensor(4)}),
        ("aten::_linalg_check_errors", {"info": indices(0), "api_name": "x", "is_matrix": "True"}),
        ("aten::div", {"self": tensor(4), "other": tensor(4), "rounding_mode": "/etc/passwd"}),
        ("mkldnn::data_ptr", {"mkldnn_tensor": tensor(4)}),
        ("profiler::_record_function_enter", {"name": "x"}),
        ("load_library::__call__", {"path": "MARK"}),
        ("__class__::__init__", {}),
    ],
)
def test_an_op_that_can_do_more_than_compute_is_skipped(
    tmp_path: Path, call: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    ran = run_here(tmp_path, [op(call, arguments=arguments)])
    assert ran.first("skipped").why
    assert not (tmp_path / "MARK").exists()


def test_a_tensor_larger_than_the_machine_is_not_made(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for one in (tensor(1 << 45), tensor(2, 2, stride=(1 << 45, 1))):
        ran = run_here(tmp_path, [op("aten::relu", arguments={"self": one})])
        assert "does not fit into the memory" in (ran.first("skipped").why or "")


def test_a_log_writes_no_file_and_the_rest_of_it_is_replayed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    mark = tmp_path / "MARK"
    evil = (
        f"[OP] LAUNCH aten::from_file [id=1] target=cuda:0;filename={mark};shared=True;size=64\n"
        "[OP] COMPLETE aten::from_file [id=1] target=cuda:0\n"
    )
    (tmp_path / "serve.log").write_text(evil + EMBEDDING + NO_OPS)
    (tmp_path / "model.pt").write_text("weights")
    code, _, err = cli(tmp_path, "serve.log", "--replay", "--repro", "model.py")
    assert (code, "model.pt lies beside it" in err) == (2, True), err
    code, out, err = cli(tmp_path, "serve.log", "--replay", "--repro", "made.py", "--format", "json")
    assert code == 0, err
    assert json.loads(out)["replay"]["verdict"] == "confirmed"
    assert "torch.ops.aten.embedding" in (tmp_path / "made.py").read_text()
    assert not mark.exists()
    assert (tmp_path / "model.pt").read_text() == "weights"


def test_a_line_end_in_a_name_of_a_plan_ends_no_comment(tmp_path: Path, log: Path) -> None:
    pytest.importorskip("torch")
    name = f"aten::embedding\nopen({str(tmp_path / 'MARK')!r}, 'w')\n#"
    op_of_plan = {
        "name": name, "executor": "torch", "call": "aten::embedding", "overload": "default",
        "arguments": [WEIGHT, {"name": "indices", "tensor": BAD}],
    }  # fmt: skip
    plan_of(tmp_path / "p.json", op_of_plan)
    code, _, err = cli(tmp_path, log.name, "--replay", "--plan", "p.json", "--repro", "out.py")
    assert code == 0, err
    assert "aten::embedding\\nopen(" in (tmp_path / "out.py").read_text()
    assert not (tmp_path / "MARK").exists()


def test_a_plan_reads_only_what_was_named(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "plans"
    folder.mkdir()
    (tmp_path / "secret.pt").write_bytes(b"x")
    (folder / "link.pt").symlink_to(tmp_path / "secret.pt")
    for file in ("../secret.pt", str(tmp_path / "secret.pt"), "link.pt"):
        stored = {**BAD, "values": None, "file": file}
        plan_of(
            folder / "p.json",
            {
                "name": "x",
                "executor": "torch",
                "call": "aten::relu",
                "arguments": [{"name": "self", "tensor": stored}],
            },
        )
        code, _, err = cli(tmp_path, log.name, "--replay", "--plan", "plans/p.json")
        assert (code, "name its folder with --replay-inputs" in err) == (5, True), err


PROGRAM = """import sys
for place in range(3): print(place)
if sys.argv[1] == 'bad': raise IndexError('out of range')
"""
FAILED = """Traceback (most recent call last):
  File "/srv/app/a.py", line 3, in <module>
    raise IndexError('out of range')
IndexError: out of range
"""


def test_replays_at_once_in_one_folder_find_what_each_finds_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PROGRAM)
    (tmp_path / "idx.log").write_text(FAILED)

    def verdict(word: str) -> tuple[int, str, int]:
        code, out, _ = cli(
            tmp_path, "idx.log", "--replay", "--format", "json", "--", sys.executable, "a.py", word
        )
        replay = json.loads(out)["replay"]
        return code, replay["verdict"], len(replay["attempts"])

    alone = {word: verdict(word) for word in ("good", "bad")}
    assert alone["good"][1] != alone["bad"][1]
    wanted = ["good", "bad"] * 4
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(verdict, wanted)) == [alone[word] for word in wanted]


def test_each_run_has_a_folder_and_only_finished_ones_are_removed(tmp_path: Path) -> None:
    with run_folder(tmp_path) as running:
        for _ in range(KEPT + 3):
            with run_folder(tmp_path) as folder:
                (folder / "1.log").write_text("")
        assert running.is_dir()
    assert len(list(tmp_path.iterdir())) <= KEPT + 2  # the running one, and one whose lock is just let go

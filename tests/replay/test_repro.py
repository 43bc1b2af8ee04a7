"""The program written of a confirmed op runs without this package and ends in the same error."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

from analyzer.replay.op_replay import replay_ops
from analyzer.replay.ops.options import OpReplayOptions
from analyzer.replay.plan import Plan, PlanArgument, PlanOp
from analyzer.replay.report import ReplayReport
from analyzer.replay.repro.write import fails_alike
from tests.replay import children
from tests.replay.plans import failing_log, tensor

KERNELS = Path(__file__).parent / "programs" / "kernels"
OUT_OF_RANGE = "IndexError: index 9 is out of bounds for dimension 0 with size 8"


needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


def argument(name: str, value: Any = None, **facts: Any) -> PlanArgument:
    return PlanArgument(name=name, value=value, **facts)


def op(number: int, call: str, *arguments: PlanArgument, **facts: Any) -> PlanOp:
    settings = {"executor": "torch", **facts}
    return PlanOp(number=number, name=call, call=call, arguments=arguments, **settings)


def replay(folder: Path, *ops: PlanOp, error: str = OUT_OF_RANGE, **settings: Any) -> str:
    """Replay ops of which the last one fails; gives the program."""
    repro = folder / "repro.py"
    options = OpReplayOptions(folder=folder / "replay", repro=repro, deadline_s=120.0, **settings)
    report: ReplayReport = replay_ops(failing_log(error), Plan(log="serve.log", ops=ops), options)
    assert report.verdict == "confirmed", report.statement
    assert report.repro == str(repro)
    assert report.repro_verified, report.statement
    return repro.read_text()


def last_words(program: Path) -> str:
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, cwd="/")
    assert ran.returncode == 1
    return ran.stderr.splitlines()[-1]


@needs_torch
def test_makers_of_the_inputs_are_in_it_and_results_have_names(tmp_path: Path) -> None:
    made = tensor((8, 4), "float32", fidelity="made")
    bad = tensor((3,), values=(0, 9, 1))
    text = replay(
        tmp_path,
        op(0, "aten::mul", argument("self", tensor=made), argument("other", tensor=made)),
        op(
            1,
            "aten::index",
            argument("self", tensor=tensor((8, 4), "float32", fidelity="made", from_op=0)),
            argument("indices", tensors=(bad,)),
        ),
    )
    assert "mul_result = torch.ops.aten.mul.Tensor(" in text
    assert "torch.ops.aten.index.Tensor(mul_result, [indices_0])" in text
    assert "indices_0 = torch.tensor([0, 9, 1], dtype=torch.int64, device='cpu')  # recorded values" in text
    assert "trace_analyze" not in text
    assert "Inputs: recorded values of indices, self from the ops before it.\n" in text
    assert "Inputs of the ops before it: made values.\n" in text
    assert last_words(tmp_path / "repro.py") == OUT_OF_RANGE


@needs_torch
def test_large_recorded_inputs_go_to_a_file_beside_it(tmp_path: Path) -> None:
    import torch

    indices = torch.arange(10_000) % 8
    indices[77] = 9
    table = torch.randn(8, 32, dtype=torch.bfloat16)
    torch.save({"table": table, "indices": indices}, tmp_path / "inputs.pt")
    file = str(tmp_path / "inputs.pt")
    stored: dict[str, Any] = {"fidelity": "recorded", "file": file}
    text = replay(
        tmp_path,
        op(
            0,
            "aten::index",
            argument("self", tensor=tensor((8, 32), "bfloat16", key="table", **stored)),
            argument("indices", tensors=(tensor((10_000,), key="indices", **stored),)),
        ),
    )
    assert (tmp_path / "repro.pt").exists()
    assert "indices_0 = stored['indices_0']  # recorded values" in text
    assert last_words(tmp_path / "repro.py") == OUT_OF_RANGE


@needs_torch
def test_a_function_of_the_users_is_imported_from_its_file(tmp_path: Path) -> None:
    mine = tmp_path / "my_ops.py"
    mine.write_text(
        textwrap.dedent(
            """
            def paged_lookup(table, pages):
                return table[pages]
            """
        )
    )
    text = replay(
        tmp_path,
        op(
            0,
            "paged_lookup",
            argument("table", tensor=tensor((8, 4), "float32", fidelity="made")),
            argument("pages", tensor=tensor((2,), values=(9, 0))),
            executor="user",
        ),
        user_ops=mine,
    )
    assert f"user_ops = load({str(mine)!r})" in text
    assert "user_ops.paged_lookup(table=table, pages=pages)" in text
    assert last_words(tmp_path / "repro.py") == OUT_OF_RANGE


@needs_torch
def test_an_op_of_a_family_is_written_as_the_calls_that_it_came_to(tmp_path: Path) -> None:
    error = "IndexError: index out of range in self"
    text = replay(
        tmp_path,
        op(
            0,
            "mo.gather",
            argument("arg0", tensor=tensor((8, 4), "float32", fidelity="made")),
            argument("arg1", tensor=tensor((2,), values=(9, 0), extent=8)),
            argument("axis", 0),
        ),
        error=error,
    )
    assert "torch.ops.aten." in text
    assert last_words(tmp_path / "repro.py").startswith("IndexError: ")


def test_another_error_is_not_alike(tmp_path: Path) -> None:
    raised = children.run(children.python("raise IndexError('x')"), tmp_path)
    assert fails_alike(raised, raised, "IndexError: index out of range")
    for code in (children.RAISES, children.HEALTHY, children.ABORTS):
        other = children.run(children.python(code), tmp_path)
        assert not fails_alike(other, raised, "IndexError: index out of range")


@pytest.mark.max
def test_a_custom_op_of_max_is_written_as_a_graph_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("max.engine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(tempfile.gettempdir()) / "trace-analyze-max-worker"))
    cause = "raising_op: table size mismatch: expected 64 got 64"
    source = argument("arg0", tensor=tensor((64,), "float32", fidelity="made"))
    out = (tensor((64,), "float32", fidelity="made"),)
    text = replay(
        tmp_path,
        op(0, "custom::copying_op", source, outputs=out, executor="max"),
        op(1, "custom::raising_op", source, outputs=out, executor="max"),
        error=cause,
        custom_extensions=(KERNELS,),
    )
    assert "import torch" not in text
    assert "name='raising_op'" in text
    assert (tmp_path / "repro.npz").exists()
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "repro.py")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert cause in ran.stderr

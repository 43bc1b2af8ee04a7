"""What runner, plan and worker agree on."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import msgspec
import pytest

from analyzer.replay import plan
from analyzer.replay.worker import plan_file
from analyzer.replay.worker.job import Job, dump_job, load_job
from tests.replay.worker.jobs import indices, op, tensor


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (plan.PlanTensor, plan_file.Tensor),
        (plan.PlanArgument, plan_file.Argument),
        (plan.PlanOp, plan_file.Op),
    ],
)
def test_the_worker_reads_the_fields_of_the_plan_with_its_defaults(written: Any, read: Any) -> None:
    fields = msgspec.structs.fields(written)
    assert tuple(field.encode_name for field in fields) == read._fields
    defaults = {
        field.name: field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        for field in fields
        if not field.required
    }
    assert defaults == read._field_defaults


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    one = op(
        "aten::cat",
        arguments={"tensors": (tensor(2, stride=(3,)), None), "index": indices(1, 2), "dim": "0", "n": 3},
        outputs=(tensor(2),),
        parts=("a", "b"),
        source={"file": "f.py", "line": 1, "function": "g"},
    )
    path = tmp_path / "plan.json"
    plan.write_plan(plan.Plan(ops=(one,)), path)
    (read,) = plan_file.read_ops(path).values()
    assert (read.call, read.parts) == ("aten::cat", ("a", "b"))
    several = read.arguments[0].tensors
    assert several is not None
    assert several[0] is not None
    assert (several[0].shape, several[0].stride, several[1]) == ((2,), (3,), None)
    assert read.arguments[1].tensor is not None
    assert read.arguments[1].tensor.values == (1, 2)
    assert (read.arguments[2].text, read.arguments[3].value) == ("0", 3)
    assert read.outputs[0].shape == (2,)


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    job = Job(plan="p", journal="j", ops=(3, 1), valid=(1,), device="cpu", custom_extensions=("k",), seed=4)
    dump_job(job, tmp_path / "job.json")
    assert load_job(tmp_path / "job.json") == job


def test_a_job_with_an_unknown_word_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text('{"plan": "p", "journal": "j", "ops": [], "colour": 1}')
    with pytest.raises(TypeError, match="colour"):
        load_job(path)


def test_the_worker_needs_no_package_of_ours_or_of_others() -> None:
    """Modules that it imports at the top: the standard library and its own kin."""
    from analyzer.replay.executors import all_executors, call
    from analyzer.replay.worker import blame, dtypes, inputs, run, stored

    assert all_executors()
    for module in (blame, dtypes, inputs, run, stored, plan_file, call):
        text = inspect.getsource(module)
        tops = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
        assert not [line for line in tops if "msgspec" in line or "polars" in line or "torch" in line]

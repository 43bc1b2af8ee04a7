"""MAX runs its own ops on the CPU. The first compile takes a minute, later ones are found in its cache."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.replay.worker.jobs import indices, op, run_worker, tensor

KERNELS = str(Path(__file__).parents[1] / "programs" / "kernels")
T = tensor

pytestmark = pytest.mark.max


@pytest.fixture(autouse=True)
def _max(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("max.engine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(tempfile.gettempdir()) / "trace-analyze-max-worker"))


def _op(call: str, number: int, *tensors: Any, **facts: Any) -> Any:
    arguments = {f"arg{place}": one for place, one in enumerate(tensors)}
    return op(call, number, executor="max", arguments=arguments, **facts)


def test_ops_of_max_and_custom_ops_are_executed_by_max(tmp_path: Path) -> None:
    """One healthy custom op, then one that raises in its host code: that one is the fault."""
    ops = [
        _op("mo.matmul", 0, T(8, 16, device="gpu:7"), T(16, 4, device="gpu:7")),
        _op("mo.gather", 1, T(4, 3), indices(0, 3, extent=4)),
        _op("custom::copying_op", 2, T(64), outputs=(T(64),)),
        _op("custom::raising_op", 3, T(64), outputs=(T(64),)),
    ]
    ran = run_worker(tmp_path, ops, custom_extensions=(KERNELS,), timing_runs=3)
    assert ran.code == 1
    done = [(one.number, one.outputs[0].shape, bool(one.duration_ns)) for one in ran.journal.of("done")]
    assert done == [(0, [8, 4], True), (1, [2, 3], True), (2, [64], True)], ran.output
    failed = ran.first("failed")
    assert (failed.number, failed.name, failed.why) == (3, "custom::raising_op", None)
    assert "raising_op: table size mismatch" in (failed.error or "")
    assert [one.why for one in ran.journal.of("note")] == ["MAX has no gpu:7 here: executed on the cpu"]
    assert [(one.low, one.high) for one in list(ran.journal.of("op"))[1].inputs] == [(None, None), (0, 3)]


def test_a_fused_op_is_one_graph_and_types_of_sixteen_bits_are_fed(tmp_path: Path) -> None:
    half = "bfloat16"
    fused = _op(
        "fused",
        0,
        *(T(8, 16, dtype=half), T(8, 16, dtype=half)),
        parts=("mo.add", "mo.silu", "mo.static.reshape"),
        outputs=(T(128, dtype=half),),
    )
    taken = _op("mo.relu", 1, T(128, dtype=half, from_op=0))
    ran = run_worker(tmp_path, [fused, taken])
    assert ran.code == 0, ran.output
    shapes = [(one.outputs[0].shape, one.outputs[0].dtype) for one in ran.journal.of("done")]
    assert shapes == [([128], half), ([128], half)]


def test_a_graph_that_does_not_build_is_no_fault(tmp_path: Path) -> None:
    ran = run_worker(tmp_path, [_op("mo.matmul", 0, T(8, 16), T(4, 4))])
    assert (ran.code, ran.events(), ran.first("failed").why) == (1, [("failed", 0)], "call")


def test_what_nobody_can_build_is_skipped(tmp_path: Path) -> None:
    ops = [
        _op("mo.no_such", 0, T(4)),
        _op("mo.add", 1, T(4)),
        _op("custom::copying_op", 2, T(4)),
        _op("mo.relu", 3, T(4, dtype="int4")),
    ]
    ran = run_worker(tmp_path, ops, custom_extensions=(KERNELS,))
    assert ran.code == 0
    assert [one.why for one in ran.journal.of("skipped")] == [
        "nothing says how MAX is called for no_such",
        "add takes 2 operands, the plan has 1",
        "the types of the outputs of custom::copying_op are not known",
        "tensors of type int4 cannot be made",
    ]


def test_torch_ops_are_skipped_where_torch_is_missing(tmp_path: Path) -> None:
    try:
        import torch as _  # noqa: F401
    except ImportError:
        ran = run_worker(tmp_path, [op("aten::relu", arguments={"self": T(2)})])
        assert "torch cannot be imported" in (ran.first("skipped").why or "")
    else:
        pytest.skip("torch is installed beside MAX")

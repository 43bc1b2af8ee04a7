"""The worker on a device: events measure, an assertion there is the fault, the process ends with our code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.replay.worker.jobs import Ran, indices, op, run_worker, tensor

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _device() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


def _select(folder: Path, index: Any, **settings: Any) -> Ran:
    first = op("aten::mm", 0, device="cuda:0", arguments=dict.fromkeys(("self", "mat2"), _wide()))
    second = op(
        "aten::index_select",
        1,
        device="cuda:0",
        arguments={"self": _wide(), "dim": "0", "index": index},
    )
    after = op("aten::relu", 2, device="cuda:0", arguments={"self": _wide()})
    return run_worker(folder, [first, second, after], timing_runs=4, **settings)


def _wide() -> Any:
    return tensor(512, 512, device="cuda:0", dtype="bfloat16")


def test_device_events_measure_sound_ops(tmp_path: Path) -> None:
    ran = _select(tmp_path, tensor(64, dtype="int64", device="cuda:0", extent=512))
    assert ran.code == 0, ran.output
    assert [one.on_device for one in ran.journal.of("done")] == [True, True, True]
    assert all(1_000 < (one.duration_ns or 0) < 50_000_000 for one in ran.journal.of("done"))
    assert [one.device for one in ran.first("op").inputs] == ["cuda:0", "cuda:0"]
    assert not list(ran.journal.of("note"))


def test_an_index_out_of_range_on_the_device_is_the_fault_of_its_op(tmp_path: Path) -> None:
    bad = indices(1, 512, device="cuda:0", extent=512)
    ran = _select(tmp_path, bad)
    assert ran.code == 1, ran.output
    failed = ran.first("failed")
    assert (failed.number, failed.why) == (1, None)
    assert "device-side assert" in (failed.error or "")
    assert [one.number for one in ran.journal.of("done")] == [0]
    assert _select(tmp_path, bad, valid=(1,)).code == 0
    on_cpu = _select(tmp_path, bad, device="cpu")
    assert (on_cpu.first("failed").number, on_cpu.first("failed").error_type) == (1, "IndexError")


def test_memory_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    size = {"size": "1000000,1000000", "dtype": "float64", "device": "cuda:0"}
    ran = run_worker(tmp_path, [op("aten::empty", device="cuda:0", arguments=size)])
    failed = ran.first("failed")
    assert (ran.code, failed.error_type, failed.why) == (1, "OutOfMemoryError", None)


def test_shapes_that_do_not_fit_are_no_fault_on_a_device(tmp_path: Path) -> None:
    pair = {"self": tensor(4, 3, device="cuda:0"), "mat2": tensor(4, 3, device="cuda:0")}
    failed = run_worker(tmp_path, [op("aten::mm", device="cuda:0", arguments=pair)]).first("failed")
    assert failed.why == "call"

"""Kineto traces: kernels joined to the ops that launched them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from analyzer.errors import InputError
from analyzer.profile.join import device_totals, join_ops, joined_work
from analyzer.profile.model import Profile
from analyzer.profile.read import read_profile

REAL = Path(__file__).parent / "data" / "kineto.json.gz"  # profiler trace of a healthy step, one H200


@pytest.fixture(scope="module")
def real() -> Profile:
    return read_profile(REAL)


def trace(tmp_path: Path, *events: dict[str, object]) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return path


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: object) -> dict[str, object]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}


def test_every_piece_of_device_work_is_assigned_or_counted(real: Profile) -> None:
    """One raw Triton launch of the trace stands outside of every op."""
    assert real.kernels.height == 70
    assert real.unassigned == 1
    loose = real.kernels.filter(pl.col("op").is_null())["name"].to_list()
    assert loose == ["add_position_embeddings_kernel"]


def test_device_time_adds_up_to_that_of_the_trace(real: Profile) -> None:
    events = json.loads(gzip.decompress(REAL.read_bytes()))["traceEvents"]
    work = [e for e in events if e.get("cat") in {"kernel", "gpu_memcpy"}]
    expected = round(sum(e["dur"] for e in work) * 1000)
    assert device_totals(real)["total_ns"].sum() == expected
    assert device_totals(real)["share"].sum() == pytest.approx(1.0)


def test_matmul_time_belongs_to_addmm(real: Profile) -> None:
    row = device_totals(real).row(by_predicate=pl.col("op") == "aten::addmm", named=True)
    assert (row["kernels"], row["streams"]) == (16, [7])


def test_a_kernel_belongs_to_the_innermost_op_around_its_launch(tmp_path: Path) -> None:
    path = trace(
        tmp_path,
        event("cpu_op", "aten::linear", 10, 50),
        event("cpu_op", "aten::addmm", 12, 20),
        event("cpu_op", "aten::other_thread", 12, 20, tid=2),
        event("cuda_runtime", "cudaLaunchKernel", 15, 3, correlation=7),
        event("kernel", "gemm", 100, 9, correlation=7, device=0, stream=7),
    )
    assert read_profile(path).kernels["op"].to_list() == ["aten::addmm"]


def test_a_launch_that_outlives_the_op_is_not_its(tmp_path: Path) -> None:
    path = trace(
        tmp_path,
        event("cpu_op", "aten::add", 10, 5),
        event("cuda_runtime", "cudaLaunchKernel", 14, 3, correlation=7),
        event("kernel", "raw", 100, 9, correlation=7, device=0, stream=7),
    )
    assert read_profile(path).unassigned == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": 3}', '{"traceEvents": []}'])
def test_what_is_no_profile_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match="--profile"):
        read_profile(path)


def test_a_missing_profile_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_profile(tmp_path / "none.json")


def oplog(*names: str) -> pl.DataFrame:
    return pl.DataFrame({"name": names}, schema={"name": pl.Categorical})


def profile_of(tmp_path: Path, *names: str) -> Profile:
    events = []
    for i, name in enumerate(names):
        events += [
            event("cpu_op", name, 10 * i, 5),
            event("cuda_runtime", "cudaLaunchKernel", 10 * i + 1, 1, correlation=i),
            event("kernel", "k", 100 + 10 * i, 1 + i, correlation=i, device=0, stream=i % 2),
        ]
    return read_profile(trace(tmp_path, *events))


def test_the_nth_launch_of_a_name_is_the_nth_in_the_profile(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, "aten::mm", "aten::add", "aten::mm")
    joined = join_ops(oplog("aten::mm", "aten::add", "aten::mm"), profile)
    assert joined["device_ns"].to_list() == [1000, 2000, 3000]
    assert joined["device_stream"].to_list() == [0, 1, 0]


def test_names_whose_counts_differ_get_no_times(tmp_path: Path) -> None:
    """Which of three launches two profiled ones were cannot be known."""
    profile = profile_of(tmp_path, "aten::mm", "aten::mm", "aten::add")
    joined = join_ops(oplog("aten::mm", "aten::mm", "aten::mm", "aten::add"), profile)
    assert joined["device_ns"].to_list() == [None, None, None, 3000]


def nested(tmp_path: Path) -> Profile:
    """``aten::linear`` above the dispatcher, ``aten::_to_copy`` with the ``copy_`` that it launches by."""
    return read_profile(
        trace(
            tmp_path,
            event("cpu_op", "aten::linear", 0, 40),
            event("cpu_op", "aten::addmm", 5, 30),
            event("cuda_runtime", "cudaLaunchKernel", 10, 3, correlation=1),
            event("kernel", "gemm", 100, 9, correlation=1, device=0, stream=7),
            event("cpu_op", "aten::_to_copy", 50, 40),
            event("cpu_op", "aten::copy_", 55, 30),
            event("cuda_runtime", "cudaMemcpyAsync", 60, 3, correlation=2),
            event(
                "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 200, 4, correlation=2, device=0, stream=7
            ),
            event("cpu_op", "aten::copy_", 100, 30),
            event("cuda_runtime", "cudaLaunchKernel", 110, 3, correlation=3),
            event("kernel", "copy", 300, 2, correlation=3, device=0, stream=7),
        )
    )


def test_a_kernel_belongs_to_the_innermost_op_that_the_log_has(tmp_path: Path) -> None:
    """The log is made below autograd and shows no op inside another: neither linear nor the first copy_."""
    joined = join_ops(oplog("aten::addmm", "aten::_to_copy", "aten::copy_"), nested(tmp_path))
    assert joined["device_ns"].to_list() == [9000, 4000, 2000]
    assert joined["to_host"].to_list() == [False, True, False]


def test_what_found_no_op_is_counted(tmp_path: Path) -> None:
    profile = nested(tmp_path)
    work = joined_work(join_ops(oplog("aten::addmm", "aten::copy_", "aten::copy_"), profile), profile)
    assert (work.joined, work.elsewhere, work.unassigned) == (3, 0, 0)
    assert (work.ops, work.ops_with_times) == (3, 3)
    work = joined_work(join_ops(oplog("aten::addmm", "aten::copy_"), profile), profile)
    assert (work.joined, work.elsewhere, work.unassigned) == (1, 2, 0)
    assert work.matches

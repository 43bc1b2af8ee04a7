"""Report sites that are only synchronisation points (formats.md 4)."""

from __future__ import annotations

import pytest

from analyzer.schema import SourceFrame
from analyzer.tables.report_sites import compile_phase, is_sync_point


def _frame(text: str, function: str = "step") -> SourceFrame:
    return SourceFrame(file="/srv/app/x.py", line=1, function=function, text=text)


@pytest.mark.parametrize(
    "text",
    [
        "valid = sampled_token_ids.tolist()",
        "self.transfer_event.synchronize()",
        "entry.cudagraph.replay()",
        'y = y.to("cpu")',
        "buf3 = empty_strided((4, 4), (4, 1), device='cuda')",
    ],
)
def test_copies_waits_replays_and_allocations_only_meet_errors(text: str) -> None:
    assert is_sync_point([_frame(text)]) is not None


@pytest.mark.parametrize(
    "function", ["_init_handles", "load_binary", "_maybe_exchange_device", "synchronize"]
)
def test_a_library_frame_inside_the_call_decides(function: str) -> None:
    assert is_sync_point([_frame("k[grid](x)"), _frame("...", function)]) is not None


@pytest.mark.parametrize(
    "symbol", ["uncached_delete /pytorch/x.cpp", "x::insert_events(Block*)", "c10::TensorImpl::~TensorImpl()"]
)
def test_allocator_and_destructors_only_meet_errors(symbol: str) -> None:
    assert is_sync_point([], [symbol]) is not None


def test_a_launch_is_no_sync_point() -> None:
    assert (
        is_sync_point([_frame("k[(n,)](x, out, BLOCK=256)")], ["at::native::gpu_reduce_kernel<float>"])
        is None
    )


def test_only_the_innermost_symbols_count() -> None:
    """Every process has a wait far out in its stack."""
    assert is_sync_point([], ["a", "b", "c", "d", "cudaStreamSynchronize"]) is None


def test_compile_time_is_told_by_the_functions() -> None:
    assert (
        compile_phase([_frame("f(x)"), _frame("...", "benchmark_gpu"), _frame("...", "run")]) == "autotuning"
    )
    assert compile_phase([_frame("f(x)"), _frame("...", "codegen_and_compile")]) == "compiling"
    assert compile_phase([_frame("f(x)")]) is None

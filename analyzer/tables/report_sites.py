"""Report sites that are only synchronisation points, as data (formats.md 4), and signs of compile time.

Who reports at one of these places met an older fault: a copy to the host, a wait, an allocation, a module
load. None of them can be the op that failed, whatever the traceback says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from analyzer.schema import SourceFrame, Value

Where = Literal["function", "call", "symbol"]


class ReportSite(Value):
    """One place. ``where``: Python ``function`` of a frame, ``call`` in a source line, C++ ``symbol``."""

    where: Where
    word: str
    what: str


def _sites(where: Where, what: str, *words: str) -> tuple[ReportSite, ...]:
    return tuple(ReportSite(where=where, word=word, what=what) for word in words)


_COPY = "a copy to or from the device"
WAIT = "a wait for the device"
_GRAPH = "the replay of a graph: any of its kernels"
_MEMORY = "the allocator, which looks at events of earlier work"
_LOAD = "the load of a module: the kernel named had not been launched"
_GUARD = "the change of the current device"
_COLLECTIVE = "a collective that looks for errors of earlier work"
_TEARDOWN = "the destruction of an object"

SITES: tuple[ReportSite, ...] = (
    # PyTorch: a value goes to the host. ``.to(`` casts too, but nobody is accused for a copy.
    *_sites("call", _COPY, ".tolist(", ".item(", ".cpu(", ".to(", ".numpy("),
    *_sites("call", _COPY, ".cuda(", ".copy_(", ".nonzero("),
    *_sites("function", _COPY, "_str_intern", "_tensor_str", "_local_scalar_dense", "convert"),
    *_sites("symbol", _COPY, "_local_scalar_dense_cuda", "copy_kernel_cuda", "cudaMemcpy"),
    # vLLM: transfer_event, prepare_inputs_event; SGLang: copy_done; TensorRT-LLM: sampler_event.
    *_sites("call", WAIT, ".synchronize(", ".wait(", ".query("),
    *_sites("function", WAIT, "synchronize", "resolve_last_batch_result", "_cuda_synchronize"),
    *_sites("symbol", WAIT, "cudaEventSynchronize", "cudaStreamSynchronize", "cudaDeviceSynchronize"),
    *_sites("symbol", WAIT, "cuStreamSynchronize", "cuEventSynchronize", "device_synchronize"),
    *_sites("symbol", WAIT, "ggml_backend_cuda_synchronize", "buffer_get_tensor", "buffer_clear"),
    *_sites("call", _GRAPH, ".replay("),
    *_sites("function", _GRAPH, "replay"),
    *_sites("symbol", _GRAPH, "CUDAGraph::replay"),
    *_sites("symbol", _MEMORY, "insert_events", "process_events", "create_event_internal"),
    *_sites("symbol", _MEMORY, "empty_strided", "CUDACachingAllocator", "CachingHostAllocator"),
    *_sites("call", _MEMORY, "empty_strided(", "empty_strided_cuda(", "empty_cache("),
    *_sites("function", _LOAD, "_init_handles", "load_binary", "get_current_device"),
    *_sites("function", _GUARD, "_maybe_exchange_device", "_exchange_device", "set_device"),
    *_sites("symbol", _GUARD, "ExchangeDevice", "MaybeSetDevice", "SetDevice", "c10::cuda::device_count"),
    *_sites("call", _COLLECTIVE, "all_reduce(", "custom_all_reduce"),
    *_sites("symbol", _COLLECTIVE, "finishedGPUExecutionInternal", "custom_all_reduce"),
    *_sites("symbol", _TEARDOWN, "uncached_delete", "raw_delete", "~TensorImpl", "destroyEvent"),
)  # fmt: skip

# A fault met in one of these functions was met while code was generated and tried out, not while it served
# (formats.md 3.8: pytorch#195604, PR#137537, #115344).
_COMPILE_FUNCTIONS: dict[str, str] = {
    "codegen_and_compile": "compiling",
    "precompile": "compiling",
    "compile_fx": "compiling",
    "autotune": "autotuning",
    "autotune_to_one_config": "autotuning",
    "benchmark": "autotuning",
    "benchmark_gpu": "autotuning",
    "benchmark_all_configs": "autotuning",
    "benchmark_fused_nodes": "autotuning",
    "coordinate_descent_tuning": "autotuning",
    "do_bench": "autotuning",
    "_bench": "autotuning",
}
_BY_FUNCTION = {site.word: site.what for site in SITES if site.where == "function"}
_CALLS = tuple((site.word, site.what) for site in SITES if site.where == "call")
_SYMBOLS = tuple((site.word, site.what) for site in SITES if site.where == "symbol")


def is_sync_point(frames: Sequence[SourceFrame], cpp_frames: Sequence[str] = ()) -> str | None:
    """What the report site is, if it can only have met the error of earlier work.

    Args:
        frames: Python frames from the innermost one of the user's own code inwards, outermost first. The text
            of a frame is its source line, or better the part of it that was running.
        cpp_frames: Symbols, innermost first, without those that only check and throw.

    Returns:
        Words for a reader, or null: the place can be the launch.
    """
    for frame in reversed(frames):
        what = _BY_FUNCTION.get(frame.function) or _word_in(frame.text or "", _CALLS)
        if what is not None:
            return what
    return next((what for symbol in cpp_frames[:4] if (what := _word_in(symbol, _SYMBOLS))), None)


def compile_phase(frames: Sequence[SourceFrame]) -> str | None:
    """``autotuning`` or ``compiling`` if one of the frames does that; the innermost one decides."""
    return next((phase for f in reversed(frames) if (phase := _COMPILE_FUNCTIONS.get(f.function))), None)


def _word_in(text: str, words: Sequence[tuple[str, str]]) -> str | None:
    return next((what for word, what in words if word in text), None)

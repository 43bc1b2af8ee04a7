"""Logs of AOTInductor's value printer in the real format (observed.md 29-34), and analyses of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from analyzer.pipeline import analyze
from analyzer.schema import Result, Suspect
from analyzer.scoreboard import accused_suspect

GLUE = "\\n"
EMBEDDING = "triton_poi_fused_embedding_0"
MATMUL = "aoti_torch_cuda_mm_out"
LOG = "triton_per_fused_add_log_1"
SOFTMAX = "triton_per_fused__softmax_2"
_SEARCH = (
    "Search for `cudaErrorIllegalAddress' in "
    "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information."
)
_LATE = (
    "CUDA kernel errors might be asynchronously reported at some other API call, "
    "so the stacktrace below might be incorrect."
)
ERROR = (
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    _SEARCH,
    _LATE,
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
)


def tensor(
    head: str,
    low: float | str = -1.5,
    high: float | str = 2.5,
    *,
    size: Sequence[int] = (16, 64),
    dtype: str = "float32",
) -> list[str]:
    """One tensor of the C++ wrapper; ``head`` without brackets."""
    elements = 1
    for extent in size:
        elements *= extent
    return [
        f"[  {head}  ]:",
        f"Number of elements: {elements}",
        f"Dtype: {dtype}",
        f"Mean value: {'nan' if 'nan' in str(low) else 0.25}",
        f"Min value: {low}",
        f"Max value: {high}",
        "Device: cuda:0",
        f"Size: {list(size)}",
        f"Stride: {[64, 1][-len(size) :]}",
        "Layout: Strided",
        "Is contiguous: 1",
        "Requires grad: 0",
        "",
    ]


def python_tensor(head: str, low: float | str = -1.5, high: float | str = 2.5) -> list[str]:
    """One large tensor of the Python wrapper of PyTorch 2.11: the mean stands behind ``Dtype:``."""
    mean = "nan" if "nan" in str(low) else "0.25"
    return [
        f"inductor: {head}",
        "Number of elements:  1024",
        "Size:  torch.Size([16, 64])",
        f"Dtype:  {mean}",
        f"Mean:  {mean}",
        f"Min:  {low}",
        f"Max:  {high}",
        "Std:  0.9",
    ]


Given = tuple[str, float | str, float | str, float | str, float | str]


def launch(kernel: str, *args: Given, python: bool = False) -> list[str]:
    """A launch; for each argument: name, least and largest value before it, the same after it."""
    make = python_tensor if python else tensor
    lines = []
    for name, low, high, _, _ in args:
        lines += make(f"before_launch - {kernel} - {name}", low, high)
    for name, _, _, low, high in args:
        lines += make(f"after_launch - {kernel} - {name}", low, high)
    return lines


def ids(high: int, head: str = f"before_launch - {EMBEDDING} - arg1_1") -> list[str]:
    """Token ids of the C++ wrapper."""
    return tensor(head, 3, high, size=(4, 16), dtype="long int")


def embedding(high: int = 991, *, rows: int = 1000, done: bool = True) -> list[str]:
    """A launch of an embedding; ``done`` = false: cut before anything is printed after it."""
    table = tensor(f"before_launch - {EMBEDDING} - arg0_1", -4.3, 4.5, size=(rows, 64))
    given = ids(high) + table + tensor(f"before_launch - {EMBEDDING} - buf0", 0.0, 1e30)
    if not done:
        return given
    left = ids(high, f"after_launch - {EMBEDDING} - arg1_1")
    left += tensor(f"after_launch - {EMBEDDING} - arg0_1", -4.3, 4.5, size=(rows, 64))
    return given + left + tensor(f"after_launch - {EMBEDDING} - buf0", -3.4, 3.5)


def sound_run() -> list[str]:
    """One execution: embedding, matmul whose output is garbage before it, log, softmax in place."""
    return [
        *embedding(),
        *launch(MATMUL, ("buf1", "nan", "nan", -2.5, 2.5)),
        *launch(LOG, ("buf2", "-nan", "-nan", -1.0, 1.0), ("arg2_1", 0.5, 1.5, 0.5, 1.5)),
        *launch(SOFTMAX, ("buf3", -1.0, 1.0, 0.0, 1.0)),
    ]


def nan_run() -> list[str]:
    """The same with a NaN that the log makes; the buffer of the softmax is that of the log."""
    return [
        *embedding(),
        *launch(MATMUL, ("buf1", "nan", "nan", -2.5, 2.5)),
        *launch(LOG, ("buf2", 0.0, 3.0, "nan", "nan"), ("arg2_1", -9.0, 1.5, -9.0, 1.5)),
        *launch(SOFTMAX, ("buf3", "nan", "nan", "nan", "nan")),
    ]


def names(*kernels: str) -> list[str]:
    """Level 3: pairs of names."""
    return [f"[ {event}: {kernel} ]" for kernel in kernels for event in ("before_launch", "after_launch")]


def run(lines: Sequence[str]) -> Result:
    """The analysis of a log."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "serve.log"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return analyze([str(path)])


def accused(result: Result) -> str | None:
    """Name of the op that the conclusion points at."""
    suspect: Suspect | None = accused_suspect(result)
    return suspect.op.name if suspect else None

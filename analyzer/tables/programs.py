"""Programs whose text is read, with what is true of each, as data: a new one is one row, or none.

A program without a row is one of its own: it gets no setting of another's.
"""

from __future__ import annotations

from typing import Literal

from analyzer.vocabulary import Value

Framework = Literal["max", "torch"]


class ProgramRow(Value):
    """One program. ``framework``: what it runs on, whose settings count for it; null = it is its own.

    ``stands``: inside = a library of any program; around = it starts, or looks at, programs of others; both
    leave it to the rest of the log which framework it is. ``server``: it serves models, with these flags:
    ``eager`` starts kernels one by one instead of as CUDA graphs, ``share`` gives it more of the device.
    ``recorded``: a target of ``trace-analyze record``. ``python``: its stack is one of Python. ``signs``:
    what shows it in the text around a report.
    """

    name: str
    framework: Framework | None = None
    stands: Literal["alone", "inside", "around"] = "alone"
    server: bool = False
    eager: str | None = None
    share: str | None = None
    recorded: bool = False
    python: bool = True
    signs: tuple[str, ...] = ()


# The order counts where a log shows several: the first one wins.
PROGRAMS: tuple[ProgramRow, ...] = (
    ProgramRow(
        name="vllm",
        framework="torch",
        server=True,
        eager="--enforce-eager",
        share="--gpu-memory-utilization 0.95",
        recorded=True,
        signs=("/vllm/",),
    ),
    ProgramRow(
        name="sglang",
        framework="torch",
        server=True,
        eager="--disable-cuda-graph",
        share="--mem-fraction-static 0.95",
        recorded=True,
        signs=("/sglang/",),
    ),
    ProgramRow(
        name="tgi",
        framework="torch",
        server=True,
        eager="--cuda-graphs 0",
        signs=("/text_generation_server/",),
    ),
    ProgramRow(
        name="max",
        framework="max",
        recorded=True,
        signs=(".mojo:", "mojo_pkg_", "max/serve/", "max/engine/", "[OP] LAUNCH", "MODULAR_DEBUG"),
    ),
    ProgramRow(
        name="torch",
        framework="torch",
        recorded=True,
        signs=("libtorch", "libc10", "torch::", "at::native", "/torch/", "aten::"),
    ),
    ProgramRow(name="aoti", framework="torch"),
    ProgramRow(name="inductor", framework="torch"),
    ProgramRow(name="triton", framework="torch"),
    ProgramRow(name="gloo", framework="torch"),
    ProgramRow(name="torchrun", framework="torch"),
    ProgramRow(name="llama.cpp", python=False),
    ProgramRow(name="jax"),
    ProgramRow(name="trtllm"),
    ProgramRow(name="rocm"),
    ProgramRow(name="cuda", stands="inside"),
    ProgramRow(name="nccl", stands="inside"),
    ProgramRow(name="ray", stands="around"),
    ProgramRow(name="kubernetes", stands="around"),
    ProgramRow(name="cuda-gdb", stands="around"),
    ProgramRow(name="compute-sanitizer", stands="around"),
)

_BY_NAME = {row.name: row for row in PROGRAMS}


def program_row(name: str | None) -> ProgramRow | None:
    """The row of a program; one that has none is its own; null = any program."""
    return None if name is None else _BY_NAME.get(name) or ProgramRow(name=name)


def signs_of(framework: Framework) -> tuple[str, ...]:
    """What shows a framework in a text: its own signs, and those of all that runs on it."""
    return tuple(sign for row in PROGRAMS if row.framework == framework for sign in row.signs)


def is_known(name: str) -> bool:
    """Whether a program has a row: what holds for CUDA and PyTorch in general is not assumed of another."""
    return name in _BY_NAME

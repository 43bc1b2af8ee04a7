"""Failed allocations: PyTorch, CuPy, XLA, NCCL, llama.cpp, vLLM and the kernel's own killer (formats.md 3.4).

``CUDA error: out of memory``, which has no numbers, is a text of c10's checks and read there.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analyzer.model import FaultRecord, Reading, Record
from analyzer.parse.killed_process import killed_process
from analyzer.parse.oom_text import MARKS, OomText, read_oom
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Told
from analyzer.witnesses.host_error import Around, fault_of, read_host_errors
from analyzer.witnesses.xla_buffers import read_buffers

NAME = "oom"
_CODED = frozenset({"torch", "cupy", "ggml", "nccl"})  # an allocation call returned code 2

_CHOSEN = "oom-kill:"
_KILL_LINES = 4


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    return read_host_errors(frame, fetch, NAME, read_oom, _build)


def _build(told: Told[OomText], around: Around) -> Sequence[Record]:
    text = told.value
    if _is_told_again(text, around):
        return []
    reading = [text.reading, read_buffers(around) if text.printer == "xla" else ""]
    said = f" ({'; '.join(part for part in reading if part)})" if any(reading) else ""
    fault = FaultRecord(
        source=0,
        process="",
        line=0,
        last_line=0,
        block_first=0,
        text=text.text + said,
        witness=NAME,
        kind="out_of_memory",
        # The call that failed is known; who holds the memory is not: nobody is accused.
        site="host",
        code=2 if text.printer in _CODED else None,
        vendor=text.vendor or ("nvidia" if text.printer in {"nccl", "ggml", "cupy"} else None),
        device=text.device,
        label=f"process {text.pid} of the host" if text.pid is not None else None,
        pid=text.pid,
        detail=killed_process(text.text),
    )
    return [fault_of(told, around, fault)]


def _is_told_again(text: OomText, around: Around) -> bool:
    """The kernel says why it kills (``oom-kill:``), and then whom."""
    after = around.after[:_KILL_LINES]
    return text.text.startswith(_CHOSEN) and any(f"process {text.pid} (" in line for _, line in after)


WITNESS = Witness(
    name=NAME,
    gates=(
        *(mark for mark, printer in MARKS if printer not in {"torch", "xla"}),
        "out of memory. Tried to allocate ",
        "RESOURCE_EXHAUSTED: Out of memory",
    ),
    read=read,
    grammar="oom.lark",
)

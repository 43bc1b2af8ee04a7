"""Which launch a fault interrupted where launches were blocking and kernels named (observed.md 32)."""

from __future__ import annotations

import polars as pl

from analyzer.model import FaultRecord
from analyzer.values.launches import ProcessKernels

BLOCKING = "launches were blocking, and no line after its launch was printed"
_BEFORE, _AFTER, _CLOSE = "[ before_launch: ", "[ after_launch: ", " ]"
_TOLD = len("[ b")  # letters that tell a name that breaks off from other brackets
_TERMINATE = "terminate called"  # what C++ says on standard error before it aborts
_BLOCK_BYTES = 4096  # of standard output that is no terminal (glibc, pipes and files)


def is_blocking(kernels: ProcessKernels, fault: FaultRecord) -> bool:
    """Whether the first device fault met the names of blocking launches.

    Blocking is known from the log, or seen in the error text: under it PyTorch leaves out that errors can be
    reported late (observed.md 21).
    """
    if not (kernels.known.modes.launch_blocking or fault.async_hint is False) or kernels.interleaved():
        return False
    return kernels.limit == fault.line and kernels.launches.height > 0


def interrupted(kernels: ProcessKernels, fault: FaultRecord) -> int | None:
    """The launch that a fault under blocking launches interrupted, or null."""
    if not is_blocking(kernels, fault) or names_lost(kernels, fault):
        return None
    last = kernels.launches.row(-1, named=True)
    ended = last["completion_line"] is not None and last["completion_line"] < fault.line
    return None if ended else int(last["id"])


def names_lost(kernels: ProcessKernels, fault: FaultRecord) -> bool:
    """Whether names of later kernels were lost with the process.

    The printer does not flush, and an abort does not either: through a pipe or into a file, standard output
    ends where a block of it did, in the middle of a line as a rule, with the error text glued to it.
    """
    if _printed_bytes(kernels) % _BLOCK_BYTES == 0:
        return True
    first = max(kernels.launches.select("before_last", "after_last").row(-1), key=lambda line: line or 0)
    lines = kernels.known.readers[kernels.source].lines(int(first), fault.line)
    own = [part for line in lines if line.process == kernels.process for part in line.text.split("\n")]
    return any(_is_torn(text) for text in own)


def _printed_bytes(kernels: ProcessKernels) -> int:
    """Bytes of the names as the printer wrote them."""
    size = pl.col("kernel").str.len_bytes()
    after = pl.when(pl.col("completion_line").is_not_null()).then(size + len(_AFTER) + len(_CLOSE) + 1)
    return int(
        kernels.launches.select((size + len(_BEFORE) + len(_CLOSE) + 1 + after.fill_null(0)).sum()).item()
    )


def _is_torn(text: str) -> bool:
    """A name that breaks off, or other text behind one in the same line."""
    for head in (_BEFORE, _AFTER):
        if text.startswith(head):
            _, closed, rest = text.partition(_CLOSE)
            return not closed or bool(rest.strip())
    ended = text.find(_TERMINATE)
    return text.startswith((_BEFORE[:_TOLD], _AFTER[:_TOLD])) or (ended > 0 and bool(text[:ended].strip()))

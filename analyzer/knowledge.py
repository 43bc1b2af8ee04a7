"""What the inference may use, what it gives, and which ops belong to a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import polars as pl

from analyzer.ingest.reader import LineReader
from analyzer.model import (
    Advice,
    CollectiveState,
    DeviceMark,
    FaultRecord,
    KernelLog,
    ServerStart,
    ServerState,
)
from analyzer.schema import Cleared, Conclusion, Fault, Modes, Suspect, TensorInfo, Window
from analyzer.timeline.build import Timeline
from analyzer.timeline.locate import canonical_names, last_launch, names_of_kernel
from analyzer.timeline.processes import owners_of

Row = dict[str, object]


class Knowledge(msgspec.Struct, kw_only=True):
    """All that the inference may use."""

    timeline: Timeline
    records: Sequence[FaultRecord]
    modes: Modes
    advice: list[Advice]
    readers: Mapping[int, LineReader]
    types: Mapping[str, Sequence[TensorInfo]]
    packages: Sequence[str]
    states: Sequence[ServerState] = ()
    starts: Sequence[ServerStart] = ()
    lines_window: tuple[int, int] | None = None
    process: str | None = None
    collectives: Sequence[CollectiveState] = ()
    kernels: KernelLog = KernelLog()
    marks: Sequence[DeviceMark] = ()


class Diagnosis(msgspec.Struct, kw_only=True):
    """What the result says about the failure."""

    faults: list[Fault]
    conclusion: Conclusion
    window: Window | None = None
    cleared: Cleared = Cleared(count=0, ops=[], reasons=[])
    suspects: list[Suspect] = []


class Finding(msgspec.Struct, kw_only=True):
    """The inference about the root fault, before it becomes a ``Diagnosis``."""

    conclusion: Conclusion
    suspects: list[Suspect] = []
    window: Window | None = None
    cleared: Cleared = Cleared(count=0, ops=[], reasons=[])


def process_ops(known: Knowledge, fault: FaultRecord) -> pl.DataFrame:
    """Ops of the process of a fault: the same tag, or the only process that has ops.

    Untagged text beside tagged ops (or the other way round) is joined only where one process has ops;
    among several the owner of an untagged fault is unknown, and no ops are taken.
    """
    ops = known.timeline.ops
    if known.process is not None:
        return ops.filter(pl.col("process") == known.process)
    own = ops.filter((pl.col("source") == fault.source) & (pl.col("process") == fault.process))
    if own.height:
        return own
    return ops if len(owners_of(ops)) == 1 else ops.clear()


def reported_op(ops: pl.DataFrame, fault: FaultRecord) -> Row | None:
    """The outer op whose launch a kernel error names: the last one of that expression or symbol."""
    if ops.is_empty() or (fault.kernel is None and fault.fusion is None):
        return None
    known = canonical_names(ops["name"])
    found = names_of_kernel(kernel=fault.kernel, fusion=fault.fusion, known=known)
    line = fault.block_first if ops["source"][0] == fault.source else int(ops["launch_line"][-1])
    row = last_launch(ops, found, line) if found else None
    return outermost(ops, row) if row is not None else None


def outermost(ops: pl.DataFrame, row: Row) -> Row:
    """The op that encloses ``row`` and that no other op encloses."""
    while row["parent"] is not None:
        up = ops.filter((pl.col("id") == row["parent"]) & (pl.col("run") == row["run"]))
        if up.is_empty():
            break
        row = up.row(0, named=True)
    return row

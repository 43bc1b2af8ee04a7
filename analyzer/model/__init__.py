"""Values that pass between the stages, and the columns of the frames that do.

Frames (Polars). Lines count from 1; ``source`` indexes the inputs in the order given.

``LINES``: lines that passed the gate, by (source, line):
    source u16, line u32, text str (payload, envelope stripped), raw str (as in the file, without
    line end), time_ns i64 (UTC epoch; for clocks without a date see ``clock``; null = none),
    clock str ("epoch", "no_year", "no_date", "boot" or null), process str ('' = not tagged),
    rank i32 or null, pid i64 or null, level str or null, stream str or null ("stdout", "stderr"),
    envelope str (layer names joined by '+', '' = raw).

``OPS``: one row an op record (launch or completion), by (source, line):
    source u16, process str, line u32, launch bool (false = completion), id u64, name cat,
    detail cat (text after the id on the same line), time_ns i64 or null, clock str or null,
    stream str or null, body_last u32 or null (last line of a multi-line record; null = one line).

``TIMELINE``: one row a launch, by (source, process, run, launch_line):
    source, process, run u32 (ids restart), id, name, detail, launch_line, completion_line (null =
    none in the log: unknown, not failed), launch_ns, completion_ns, depth u16 (0 = outer),
    parent u64 or null (id of the enclosing op), step i32 (-1 = before the first known step).
"""

from __future__ import annotations

from analyzer.model.faults import (
    Detail,
    FaultRecord,
    FaultSite,
    KernelState,
    KilledProcess,
    PrintedValue,
    StopRequest,
    TrustDecision,
    XidEvent,
)
from analyzer.model.ops import FusionNode, OpDetail, OpExpr, OpFacts
from analyzer.model.printed import LAUNCHES, PRINTS, KernelLaunch, KernelLog, PrintedTensor
from analyzer.model.records import (
    BLOCKS,
    STEP_MARKS,
    Advice,
    CollectiveState,
    DeviceMark,
    Line,
    ModeRecord,
    Reading,
    Record,
    ScheduledRequest,
    ServerStart,
    ServerState,
)

__all__ = [
    "BLOCKS",
    "LAUNCHES",
    "PRINTS",
    "STEP_MARKS",
    "Advice",
    "CollectiveState",
    "Detail",
    "DeviceMark",
    "FaultRecord",
    "FaultSite",
    "FusionNode",
    "KernelLaunch",
    "KernelLog",
    "KernelState",
    "KilledProcess",
    "Line",
    "ModeRecord",
    "OpDetail",
    "OpExpr",
    "OpFacts",
    "PrintedTensor",
    "PrintedValue",
    "Reading",
    "Record",
    "ScheduledRequest",
    "ServerStart",
    "ServerState",
    "StopRequest",
    "TrustDecision",
    "XidEvent",
]

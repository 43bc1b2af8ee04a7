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

from collections.abc import Iterator
from typing import Literal

import msgspec
import polars as pl

from analyzer.schema import FaultKind, Loss, NanCoverage, OpRef, SourceFrame, TensorInfo, Trust, Value


class Line(Value):
    """One line of a source with its envelope taken off."""

    source: int
    number: int
    text: str
    process: str = ""
    time_ns: int | None = None
    rank: int | None = None
    level: str | None = None


class OpExpr(Value):
    """An op name read as an expression: ``Epilogue(matmul, silu, operandIndices=[0])``.

    ``kind`` is what a glued inner name puts before the expression (``matmul`` in
    ``matmulEpilogue(mo.matmul, ...)``); ``attributes`` are the keyword arguments, values as text.
    """

    name: str
    args: tuple[OpExpr, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    kind: str | None = None

    def leaves(self) -> Iterator[str]:
        """Names of the ops inside, left to right, without the structure words around them."""
        if not self.args:
            yield self.name
        for arg in self.args:
            yield from arg.leaves()


class OpDetail(Value):
    """What stands after the id of an op record: attributes, frames, fusion count, device.

    ``stacks`` holds one list of frames for each fused source op, outermost frame first.
    """

    attributes: tuple[tuple[str, str], ...] = ()
    device: str | None = None
    fused_from: int | None = None
    stacks: tuple[tuple[SourceFrame, ...], ...] = ()
    tensors: tuple[TensorInfo, ...] = ()


class FusionNode(Value):
    """One node of a ``Fusion info:`` tree; ``inputs`` and ``outputs`` are empty on structure nodes."""

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    children: tuple[FusionNode, ...] = ()


class KernelState(Value):
    """A kernel that a device-side witness saw at the fault (core dump, cuda-gdb, sanitizer)."""

    kernel: str
    exception: str | None = None
    pc: str | None = None
    grid_id: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    device: int | None = None
    frame: SourceFrame | None = None


FaultSite = Literal["device", "launch", "launch_serialised", "sync", "host", "driver_log", "unknown"]


class FaultRecord(Value):
    """A failure as its witness told it, before roles and trust are decided.

    ``site``: where the text came from. ``device`` = the device itself spoke (core dump, assert);
    ``launch`` = a launch call returned it; ``launch_serialised`` = a launch call in sync mode;
    ``sync`` = a copy or synchronisation met it; ``host`` = host code raised it; ``driver_log`` = the driver
    told the driver log, which names GPU and process but no kernel.
    ``line`` is the first line of the cause text, ``block_first`` the first line of the whole block.
    ``teardown``: printed while objects were destroyed, so never the first report of anything. ``met``: the
    printer only looks at the device (NCCL, a watchdog), so any other report of the process counts before it.
    ``relayed``: it says that something failed, not what (a server about its worker, a launcher about a rank),
    so it is the root only where nobody says what. ``first_observed``: a launcher saw this rank fail first.
    ``clock`` (kind of ``time_ns``, as in ``LINES``) and ``pid`` are filled in from the line if they are null.
    ``above_ns``, ``above_clock``: time of the nearest line above it, where its own line has none.
    """

    source: int
    process: str
    line: int
    last_line: int
    block_first: int
    text: str
    witness: str
    kind: FaultKind
    site: FaultSite
    code: int | None = None
    name: str | None = None
    vendor: str | None = None
    device: str | None = None
    rank: int | None = None
    time_ns: int | None = None
    count: int = 1
    entry_point: str | None = None
    kernel: str | None = None
    python: SourceFrame | None = None
    location: SourceFrame | None = None
    fusion: FusionNode | None = None
    stacks: tuple[tuple[SourceFrame, ...], ...] = ()
    state: KernelState | None = None
    label: str | None = None
    async_hint: bool | None = None
    advice: bool = False
    teardown: bool = False
    met: bool = False
    relayed: bool = False
    first_observed: bool = False
    clock: str | None = None
    pid: int | None = None
    above_ns: int | None = None
    above_clock: str | None = None


class ModeRecord(Value):
    """A switch whose state the text shows: ``name`` is a field of ``schema.Modes``."""

    source: int
    line: int
    name: str
    value: bool | str | NanCoverage


class CollectiveState(Value):
    """How far a rank came in its process group when a watchdog looked (formats.md 3.6).

    ``enqueued``, ``completed``: sequence numbers of its last collectives; ``operation``: the one that hung.
    ``elements``: how many the rank gave to it. ``group``: the process group as the text names it, without the
    rank; sequences of two groups differ.
    """

    source: int
    process: str
    line: int
    rank: int
    enqueued: int | None = None
    completed: int | None = None
    sequence: int | None = None
    operation: str | None = None
    elements: int | None = None
    timeout_ms: int | None = None
    group: str = ""


class Advice(Value):
    """A line that only advises (never a fault). ``command`` = what to run, if it says so."""

    source: int
    line: int
    text: str
    command: str | None = None


class ScheduledRequest(Value):
    """A request of the batch that was running when the server failed. ``tokens`` null = not told."""

    source: int
    line: int
    request_id: str
    tokens: int | None = None


class ServerState(Value):
    """What a server told about its load when it failed, in words."""

    source: int
    line: int
    text: str


class ServerStart(Value):
    """A server started, or a launcher starts its workers again (``again``). ``version`` null = not told."""

    source: int
    line: int
    process: str
    program: str
    version: str | None = None
    again: bool = False


Record = FaultRecord | ModeRecord | Advice | CollectiveState | ScheduledRequest | ServerState | ServerStart


BLOCKS = {"line": pl.UInt32(), "head": pl.Boolean()}
STEP_MARKS = {"source": pl.UInt16(), "process": pl.String(), "line": pl.UInt32()}


LAUNCHES = {
    "source": pl.UInt16(),
    "process": pl.String(),
    "id": pl.UInt64(),
    "kernel": pl.String(),
    "occurrence": pl.UInt32(),
    "level": pl.UInt8(),
    "line": pl.UInt32(),
    "before_last": pl.UInt32(),
    "completion_line": pl.UInt32(),
    "after_last": pl.UInt32(),
    "time_ns": pl.Int64(),
}
PRINTS = {
    "source": pl.UInt16(),
    "process": pl.String(),
    "id": pl.UInt64(),
    "event": pl.String(),
    "kernel": pl.String(),
    "arg": pl.String(),
    "repeat": pl.UInt32(),
    "form": pl.String(),
    "line": pl.UInt32(),
    "part": pl.UInt32(),
    "value": pl.String(),
    "min": pl.Float64(),
    "max": pl.Float64(),
    "end": pl.UInt32(),
}


class KernelLog(msgspec.Struct, frozen=True, kw_only=True):
    """What AOTInductor's value printer said (observed.md 29-34); columnar, for millions of prints.

    ``launches``: one row a kernel launch, by (source, process, id). ``id`` = ordinal in its process,
    ``occurrence`` counts one name from 1, ``level`` = 1 (values saved), 2 (printed) or 3 (names only),
    ``line``..``before_last`` = its first and last line before the launch, ``completion_line``..``after_last``
    = those after it (null = none in the log).
    ``prints``: one row a value, by (source, line, part). ``id`` = its launch, null for model inputs
    (``event`` = "input") and for lines whose launch is not in the log; ``repeat`` counts one argument
    within one event;
    ``value`` = text of a scalar; ``min``, ``max`` null = not printed; ``end`` = last line of its body, null =
    the value was not read back to the end.
    """

    launches: pl.DataFrame = pl.DataFrame(schema=LAUNCHES)
    prints: pl.DataFrame = pl.DataFrame(schema=PRINTS)

    def level(self) -> int | None:
        """The least level of the printer, null if it printed nothing."""
        return min(self.launches["level"].unique().to_list(), default=None)


class PrintedTensor(Value):
    """One tensor as the value printer showed it. Null = not printed; ``values`` flat, small tensors only."""

    name: str
    line: int
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    elements: int | None = None
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    values: tuple[float, ...] | None = None


class KernelLaunch(Value):
    """One launch of a kernel with the tensors printed before and after it (see ``KernelLog``)."""

    source: int
    process: str
    id: int
    kernel: str
    occurrence: int
    level: int
    line: int
    completion_line: int | None
    before: tuple[PrintedTensor, ...] = ()
    after: tuple[PrintedTensor, ...] = ()


class Reading(msgspec.Struct, kw_only=True):
    """What one witness read: records, and which lines it took as heads or as bodies of records.

    ``step_marks``: source u16, process str, line u32 of lines that an executor prints once at the start of
    each execution (a frame: a long log has ten thousands). ``not_mine``: gated lines that are understood to
    be another program's text; they count as ignored, not as lost. ``blocks``: line u32, head bool (false =
    body) of a witness that takes millions of lines, beside ``parsed`` and ``continuation``. ``kernels``:
    launches that a value printer told.
    """

    records: list[Record] = []
    parsed: list[int] = []
    continuation: list[int] = []
    not_mine: list[int] = []
    losses: list[Loss] = []
    step_marks: pl.DataFrame | None = None
    kernels: KernelLog | None = None
    blocks: pl.DataFrame | None = None


class TrustDecision(Value):
    """Whether the place of a report may be believed, and why. ``rule``: who decided; empty = nobody yet."""

    trust: Trust
    reason: str
    lines: tuple[tuple[int, int], ...] = ()
    rule: str = ""


class OpFacts(Value):
    """Everything known about one op of the window.

    ``source`` holds one user frame for each fused source op, most specific first; ``novel`` = the name
    does not occur in the steps before the window (null = there are none to compare with);
    ``count_before`` = launches of that name before the window; ``inner`` = ops it encloses;
    ``symbols`` = kernel symbols that an IR file gives for it.
    """

    ref: OpRef
    launch_line: int
    completion_line: int | None
    run: int
    expr: OpExpr | None
    leaves: tuple[str, ...]
    detail: OpDetail
    tensors: tuple[TensorInfo, ...] = ()
    source: tuple[SourceFrame, ...] = ()
    novel: bool | None = None
    count_before: int = 0
    inner: tuple[OpRef, ...] = ()
    symbols: tuple[str, ...] = ()

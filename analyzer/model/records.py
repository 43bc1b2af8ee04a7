"""Lines, and what the witnesses read in them."""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.model.faults import FaultRecord
from analyzer.model.printed import KernelLog
from analyzer.schema import Loss, NanCoverage, Value


class Line(Value):
    """One line of a source with its envelope taken off."""

    source: int
    number: int
    text: str
    process: str = ""
    time_ns: int | None = None
    rank: int | None = None
    level: str | None = None


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


class DeviceMark(Value):
    """What a stream of a device had finished when the op log was written (observed.md 37-39).

    ``done``: id of the op up to which it finished all, null = of none that the log has. ``left``: ids of ops
    that it did not finish, in the order in which they were enqueued. ``graph``: the ops are those of a CUDA
    graph, as its last replay left them.
    """

    source: int
    process: str
    line: int
    stream: int
    device: str
    done: int | None
    left: tuple[int, ...]
    graph: str | None = None


Record = (
    FaultRecord
    | ModeRecord
    | Advice
    | CollectiveState
    | DeviceMark
    | ScheduledRequest
    | ServerState
    | ServerStart
)


BLOCKS = {"line": pl.UInt32(), "head": pl.Boolean()}
STEP_MARKS = {"source": pl.UInt16(), "process": pl.String(), "line": pl.UInt32()}


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

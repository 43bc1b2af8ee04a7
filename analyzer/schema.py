"""The analysis result: the versioned JSON document that every report is a view of.

All values are frozen. ``None`` means "not known from these inputs"; an empty list means
"known to be none". Lines are 1-based numbers of the input file that ``input`` indexes.
Units are in the names (``size_bytes``, ``launch_ns``).
"""

from __future__ import annotations

import msgspec

from analyzer.replay_result import Replay, VerdictName
from analyzer.vocabulary import (
    CauseClass,
    Confidence,
    FaultKind,
    Role,
    SourceFrame,
    TensorInfo,
    TimingBasis,
    Trust,
    Value,
)

__all__ = [
    "CauseClass",
    "Confidence",
    "FaultKind",
    "Replay",
    "Role",
    "SourceFrame",
    "TensorInfo",
    "TimingBasis",
    "Trust",
    "Value",
    "VerdictName",
]

SCHEMA_VERSION = "1.0"
SEQUENCE_SHOWN = 200


class InputInfo(Value):
    """One input file as it was read. ``size_bytes`` is null for standard input."""

    path: str
    size_bytes: int | None
    lines: int
    compression: str | None = None
    witnesses: list[str] = []
    envelopes: list[str] = []
    notes: list[str] = []


class Accounting(Value):
    """Every line once: ``parsed + continuation + ignored + unrecognised == total_lines``."""

    total_lines: int
    parsed: int
    continuation: int
    ignored: int
    unrecognised: int


class NanCoverage(Value):
    """How much of a graph the NaN check looked at (observed.md 17)."""

    graph: str
    checked: int
    of: int
    stride: int
    line: int


class Modes(Value):
    """Switches that were on. ``None`` = the inputs do not tell."""

    device_sync_mode: bool | None = None
    launch_blocking: bool | None = None
    source_tracebacks: bool | None = None
    op_log_level: str | None = None
    nan_check: list[NanCoverage] = []
    coredump: bool | None = None


class ProcessInfo(Value):
    """One process of the inputs; ``key`` is what told it apart ('' = the only, untagged one)."""

    key: str
    input: int
    pid: int | None = None
    rank: int | None = None
    ops: int = 0
    runs: int = 0
    notes: list[str] = []


class ReportedAt(Value):
    """Where the failing program said that the fault was. Not to be believed when trust is late."""

    kernel: str | None = None
    entry_point: str | None = None
    op_id: int | None = None
    op_line: int | None = None
    site: str | None = None
    python: SourceFrame | None = None


class Fault(Value):
    """One failure. ``line`` is the first line of its own text, ``count`` > 1 = folded repeats.

    ``time_ns``: UTC since 1970; without a date since midnight, without a year since 1 January (1970).
    Null = no stamp, or one that counts from the start of the machine, which is no time of day.
    """

    line: int
    last_line: int
    input: int
    process: str
    text: str
    witness: str
    kind: FaultKind
    role: Role
    trust: Trust
    code: int | None = None
    name: str | None = None
    vendor: str | None = None
    sticky: bool = False
    device: str | None = None
    rank: int | None = None
    time_ns: int | None = None
    byte_offset: int | None = None
    count: int = 1
    kernel: str | None = None
    reported_at: ReportedAt = ReportedAt()
    role_reason: str = ""
    trust_reason: str = ""


ASKED_WINDOW = "asked for with --window"  # how the reason of the begin starts where the caller chose it


class Border(Value):
    """One end of the window and why it is there. ``line`` = the line that proves it."""

    reason: str
    line: int | None = None
    proof: str | None = None


class OpRef(Value):
    """One op of the timeline. ``line`` is its launch record."""

    name: str
    id: int | None
    process: str
    input: int
    line: int | None
    device: str | None = None
    step: int | None = None
    detail: str | None = None


class Window(Value):
    """Launches that can be guilty: after the last proof, up to the report.

    ``size`` counts records (inner ones too), ``size_outer`` only ops that no other op encloses; ``ops`` are
    these, in launch order.
    """

    first_op: OpRef
    last_op: OpRef
    size: int
    size_outer: int
    steps: list[int]
    device: str | None
    begin: Border
    end: Border
    proven_begin: bool
    ops: list[OpRef] = []


class ClearedOp(Value):
    """An op shown innocent by name, with the reason."""

    op: OpRef
    reason: str


class Cleared(Value):
    """``count`` ops shown innocent (all before the window included)."""

    count: int
    ops: list[ClearedOp]
    reasons: list[str]


class Reason(Value):
    """One piece of evidence. ``weight`` in log-odds (natural); ``lines`` are what it rests on."""

    evidence: str
    text: str
    weight: float
    lines: list[int] = []


class Suspect(Value):
    """One op that can be guilty, with the share of the suspicion it holds (0 to 1)."""

    rank: int
    op: OpRef
    weight: float
    share: float
    reasons: list[Reason]
    source: list[SourceFrame]
    stacks: int = 0
    tensors: list[TensorInfo] = []
    inner: list[OpRef] = []


class Conclusion(Value):
    """What follows from everything. ``suspect`` is a rank in ``suspects`` or null."""

    confidence: Confidence
    cause_class: CauseClass | None
    suspect: int | None
    statement: str
    messenger: OpRef | None = None
    notes: list[str] = []


class OpTotal(Value):
    """Totals of one op name. ``total_ns`` null = the log has no times for it."""

    name: str
    count: int
    total_ns: int | None = None


class TimelineInfo(Value):
    """Size of the reconstructed op sequence. ``timing_basis`` says what the times mean.

    ``sequence``: the first ``SEQUENCE_SHOWN`` names in the order of their first launch.
    """

    ops: int
    completed: int
    unmatched_completions: int
    steps: int
    devices: list[str]
    timing_basis: TimingBasis
    names: int
    slowest: list[OpTotal] = []
    sequence: list[str] = []


class NextStep(Value):
    """The cheapest next thing to run and why."""

    command: str
    why: str


class Impact(Value):
    """A request that was being executed. ``tokens`` = scheduled for that step, null = not told."""

    request_id: str
    tokens: int | None
    line: int
    input: int = 0


class Loss(Value):
    """A text that passed a gate but that no grammar read. Never silently dropped."""

    input: int
    line: int
    witness: str
    text: str
    why: str
    count: int = 1


class Result(Value):
    """The whole analysis. Field order is the order of the published JSON."""

    schema_version: str
    tool_version: str
    inputs: list[InputInfo]
    accounting: Accounting
    modes: Modes
    processes: list[ProcessInfo]
    faults: list[Fault]
    window: Window | None
    cleared: Cleared
    suspects: list[Suspect]
    conclusion: Conclusion
    timeline: TimelineInfo
    next_steps: list[NextStep]
    replay: Replay | None
    losses: list[Loss]
    losses_omitted: int = 0
    impact: list[Impact] = []
    impact_omitted: int = 0


def json_schema() -> dict[str, object]:
    """The JSON Schema (2020-12) of :class:`Result`, made from the types themselves."""
    return msgspec.json.schema(Result)

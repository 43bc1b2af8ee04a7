"""What a replay found: the part of the result that ``--replay`` fills."""

from __future__ import annotations

from typing import Literal

from analyzer.vocabulary import FaultKind, SourceFrame, TensorInfo, Value

VerdictName = Literal[
    "confirmed",
    "confirmed_other_op",
    "not_reproduced",
    "hang",
    "out_of_memory",
    "not_replayable",
    "setup_failed",
]
Rung = Literal["locate", "blocking", "control", "uncached", "coredump", "sanitizer", "shrink"]
Fidelity = Literal["recorded", "statistics", "made"]
AttemptOutcome = Literal[
    "passed", "failed", "hang", "running", "out_of_memory", "setup_failed", "interrupted"
]
PlaceKind = Literal["op", "kernel", "gap", "call", "python"]


class BlamedOp(Value):
    """Where an attempt failed.

    ``kind``: ``op`` a framework op, ``kernel`` a kernel launched past the dispatcher or named by the
    device, ``gap`` an unannounced launch between two ops, ``call`` one execution of a graph, ``python``
    host code. ``exact`` = the attempt was serialised (or the host itself raised), so the place is where
    it happened. ``number`` counts the ops of the process; ``step`` from 0; null = not known.
    """

    name: str
    kind: PlaceKind
    exact: bool
    number: int | None = None
    step: int | None = None
    source: SourceFrame | None = None
    tensors: tuple[TensorInfo, ...] = ()
    notes: tuple[str, ...] = ()

    def is_same(self, other: BlamedOp) -> bool:
        """Same name and, where both are known, same line of the user's."""
        if self.name != other.name:
            return False
        if self.source is None or other.source is None:
            return True
        return (self.source.file, self.source.line) == (other.source.file, other.source.line)

    def text(self) -> str:
        """For a sentence: name, step and place."""
        step = f" in step {self.step}" if self.step is not None else ""
        place = f" at {self.source.file}:{self.source.line}" if self.source else ""
        return f"{self.name}{step}{place}"


class ReplayAttempt(Value):
    """One child. ``switches`` are the variables set for it; ``output`` is the file with what it printed.

    ``fidelity``: of the inputs of an op replay (null = the program's own). ``sound_before``: the same op
    was seen sound earlier in this attempt (null = not known). ``ops``: events in the journal.
    ``used_device``: whether a device was in use (null = not known). ``reached``: whether an op of the window
    (any op, where no step was to be watched) was begun; null = no framework that we watch was loaded.
    ``steps``: how many were begun (null = none was seen).
    """

    number: int
    rung: Rung
    outcome: AttemptOutcome
    command: list[str]
    switches: dict[str, str]
    duration_s: float
    output: str
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    kind: FaultKind | None = None
    error: str | None = None
    op: BlamedOp | None = None
    producer: BlamedOp | None = None
    sound_before: bool | None = None
    stopped: bool = False
    used_device: bool | None = None
    reached: bool | None = None
    steps: int | None = None
    ops: int = 0
    fidelity: Fidelity | None = None
    notes: tuple[str, ...] = ()


class ReplayedOp(Value):
    """One op that an op replay executed.

    ``device_ns``: by CUDA events (``on_device``) or the host clock, median of
    the sound runs; null = it never ran through. ``fidelity``: of its inputs. ``stand_in``: see the plan.
    """

    number: int
    name: str
    call: str
    fidelity: Fidelity
    outcome: Literal["sound", "failed", "hang", "out_of_memory", "not_run"]
    device_ns: int | None = None
    on_device: bool = False
    log_id: int | None = None
    line: int | None = None
    step: int | None = None
    stand_in: str | None = None
    why_not: str | None = None


class Comparison(Value):
    """The analysis of the child's own output beside that of the log. Null = one of them does not say."""

    log_kind: FaultKind | None
    replay_kind: FaultKind | None
    same_kind: bool | None
    log_op: str | None
    replay_op: str | None
    same_op: bool | None


class Replay(Value):
    """A whole replay. ``verdict`` null = interrupted before anything could be said.

    ``control``: what passed so that the verdict means something (null = none ran). ``skipped``: rungs of
    the ladder that were not tried, each with its reason. ``kind``: ``program`` = the user's program,
    ``ops`` = the ops of the window by themselves, from the plan ``plan``; then ``ops`` has one entry
    each. ``shrunk_to``: numbers of the smallest failing list of ops (null = not shrunk). ``repro``: the
    program written for it, ``repro_verified`` = it was run by itself and failed alike.
    """

    verdict: VerdictName | None
    statement: str
    kind: Literal["program", "ops"] = "program"
    rules_out: tuple[str, ...] = ()
    attempts: tuple[ReplayAttempt, ...] = ()
    op: BlamedOp | None = None
    producer: BlamedOp | None = None
    control: str | None = None
    comparison: Comparison | None = None
    skipped: tuple[str, ...] = ()
    interrupted: bool = False
    folder: str | None = None
    plan: str | None = None
    ops: tuple[ReplayedOp, ...] = ()
    fidelity: Fidelity | None = None
    shrunk_to: tuple[int, ...] | None = None
    repro: str | None = None
    repro_verified: bool | None = None

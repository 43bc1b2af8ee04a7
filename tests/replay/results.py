"""Analyses and attempts made by hand, for the rules that need no child."""

from __future__ import annotations

from analyzer.replay.report import AttemptOutcome, BlamedOp, ReplayAttempt, Rung
from analyzer.schema import (
    Accounting,
    Cleared,
    Conclusion,
    InputInfo,
    Modes,
    OpRef,
    Result,
    SourceFrame,
    Suspect,
    TimelineInfo,
    Window,
)


def frame(line: int, file: str = "serve.py") -> SourceFrame:
    return SourceFrame(file=file, line=line, function="main")


def suspect(name: str, line: int, rank: int = 1) -> Suspect:
    op = OpRef(name=name, id=3, process="", input=0, line=30)
    return Suspect(rank=rank, op=op, weight=4.0, share=0.7, reasons=[], source=[frame(line)])


def log(*suspects: Suspect, witnesses: tuple[str, ...] = (), window: Window | None = None) -> Result:
    """An analysis that names its first suspect."""
    return Result(
        schema_version="1.0",
        tool_version="0",
        inputs=[InputInfo(path="serve.log", size_bytes=1, lines=1, witnesses=list(witnesses))],
        accounting=Accounting(total_lines=1, parsed=0, continuation=0, ignored=1, unrecognised=0),
        modes=Modes(),
        processes=[],
        faults=[],
        window=window,
        cleared=Cleared(count=0, ops=[], reasons=[]),
        suspects=list(suspects),
        conclusion=Conclusion(
            confidence="likely" if suspects else "none",
            cause_class=None,
            suspect=1 if suspects else None,
            statement="",
        ),
        timeline=TimelineInfo(
            ops=0, completed=0, unmatched_completions=0, steps=0, devices=[], timing_basis="none", names=0
        ),
        next_steps=[],
        replay=None,
        losses=[],
    )


def blamed(name: str = "aten::index", line: int = 7, *, exact: bool = True) -> BlamedOp:
    return BlamedOp(name=name, kind="op", exact=exact, number=40, step=7, source=frame(line))


def attempt(
    outcome: AttemptOutcome,
    op: BlamedOp | None = None,
    *,
    rung: Rung = "blocking",
    sound_before: bool | None = None,
    stopped: bool = False,
    number: int = 1,
    reached: bool | None = True,
    events: int = 40,
    steps: int | None = None,
) -> ReplayAttempt:
    return ReplayAttempt(
        number=number,
        rung=rung,
        outcome=outcome,
        command=["python", "serve.py"],
        switches={},
        duration_s=1.0,
        output="1.log",
        op=op,
        sound_before=sound_before,
        stopped=stopped,
        reached=reached,
        steps=steps,
        ops=events,
    )

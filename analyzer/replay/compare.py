"""The analysis of a child's output beside that of the log."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.replay.observe import root_fault
from analyzer.replay.report import BlamedOp, Comparison
from analyzer.schema import FaultKind, Result, SourceFrame, Suspect
from analyzer.tables.families import UNKNOWN, families

_NAMESPACES = ("aten::", "mo.", "custom__", "prim::")
_GATHERS = {"embedding": "index"}  # an embedding is a gather of rows, and runs the same kernels


def accused(log: Result) -> list[Suspect]:
    """Whom the log suspects: the one it names, else all that it ranks."""
    named = [one for one in log.suspects if one.rank == log.conclusion.suspect]
    return named or log.suspects


def is_suspect(op: BlamedOp, suspect: Suspect) -> bool:
    """Whether the op that a replay blames is that suspect: by name, or by the user's line."""
    if set(_names(op.name)) & {name for text in _suspect_names(suspect) for name in _names(text)}:
        return True
    if op.source is not None and any(_same_line(op.source, frame) for frame in suspect.source):
        return True
    return _launches_kernel(op, suspect)


def _launches_kernel(op: BlamedOp, suspect: Suspect) -> bool:
    """Whether a suspect known by its device kernel only does the work of this op.

    A device assert names the kernel (``vectorized_gather_kernel``) and not the framework op that launched it
    (``aten::embedding``): they are compared by family.
    """
    if suspect.op.id is not None or suspect.op.line is not None:
        return False
    work = {_GATHERS.get(family, family) for family in families([op.name])} - {UNKNOWN}
    return bool(work & {_GATHERS.get(family, family) for family in families([suspect.op.name])})


def compare(log: Result, analysis: Result | None, op: BlamedOp | None, kind: FaultKind | None) -> Comparison:
    """What the log and the replay say of fault and op.

    Args:
        log: Analysis of the log.
        analysis: Analysis of the child's output; null = none.
        op: What the replay blames; null = nothing.
        kind: Fault kind of the attempt, where the output has no fault of its own.
    """
    before, after = root_fault(log), root_fault(analysis)
    replay_kind = after.kind if after else kind
    suspects = accused(log)
    log_op = suspects[0].op.name if len(suspects) == 1 else None
    return Comparison(
        log_kind=before.kind if before else None,
        replay_kind=replay_kind,
        same_kind=before.kind == replay_kind if before and replay_kind else None,
        log_op=log_op,
        replay_op=op.name if op else None,
        same_op=any(is_suspect(op, one) for one in suspects) if op and suspects else None,
    )


def _suspect_names(suspect: Suspect) -> Iterator[str]:
    yield suspect.op.name
    yield from (inner.name for inner in suspect.inner)


def _names(text: str) -> Iterator[str]:
    """The name with and without the namespace that one of the two writers puts before it."""
    name = text.strip().removeprefix("__")
    yield name
    for space in _NAMESPACES:
        if name.startswith(space):
            yield name.removeprefix(space)


def _same_line(one: SourceFrame, other: SourceFrame) -> bool:
    """Op logs keep three parts of a path (observed.md 2), so only the file name is sure to be there."""
    return one.line == other.line and one.file.rsplit("/", 1)[-1] == other.file.rsplit("/", 1)[-1]

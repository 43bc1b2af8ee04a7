"""Who wrote the indices that a failing op read: it may be only the messenger (observed.md 25)."""

from __future__ import annotations

from analyzer.replay.journal import Entry, Journal
from analyzer.replay.report import BlamedOp

_INDEX_TYPES = frozenset({"torch.int64", "torch.int32"})


def find_producer(journal: Journal, failing: Entry) -> BlamedOp | None:
    """The last op of the window that can have written an integer input of the failing op.

    A dispatched op writes its results, unless they are views of its inputs; of a kernel only the arguments
    are known, so it counts as a writer of each of them. Memory is told apart by the address of its storage;
    what counts is the last one before the failure, so that memory that was handed out again does no harm.
    Null = nobody in the window.
    """
    begun = journal.begun(failing)
    wanted = {one.storage for one in begun.inputs if one.dtype in _INDEX_TYPES and one.storage}
    if not wanted:
        return None
    ops = {entry.number: entry for entry in journal.of("op") if entry.pid == failing.pid}
    found: Entry | None = None
    for entry in journal.of("done"):
        op = ops.get(entry.number)
        if entry.pid != failing.pid or op is None or op.number == failing.number:
            continue
        if _written(op, entry) & wanted:
            found = op
    if found is None:
        return None
    return BlamedOp(
        name=found.name or "unknown op",
        kind=found.kind,
        exact=False,
        number=found.number,
        step=None if found.between else found.step,  # the input of the next step is made there, too
        source=found.place,
        tensors=tuple(one.info() for one in found.inputs),
        notes=_between(found),
    )


def _between(op: Entry) -> tuple[str, ...]:
    if not op.between:
        return ()
    if op.step is None:
        return ("before the model call of the first step",)
    return (f"between the model calls of step {op.step} and step {op.step + 1}",)


def _written(op: Entry, done: Entry) -> set[int | None]:
    """Addresses of the storages that an op can have written."""
    inputs, outputs = ({one.storage for one in tensors} for tensors in (op.inputs, done.outputs))
    if op.kind != "op":
        return inputs | outputs
    return outputs if op.mutates else outputs - inputs

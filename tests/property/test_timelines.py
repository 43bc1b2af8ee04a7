"""What cutting and interleaving do to a timeline: nothing."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oplog import MARK, block, complete, launch, text, timeline

NAMES = [
    "matmul",
    "Epilogue(matmul, silu, operandIndices=[0])",
    "custom__lookup",
    "elementwise(mogg.foreach)",
]
COLUMNS = ["launch_line", "id", "name", "detail", "completion_line", "body_last"]
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Writer:
    """Prints what a MAX process prints, ids in launch order."""

    lines: list[str]
    next_id: int = 0

    def op(self, draw: st.DrawFn, depth: int) -> None:
        """One op with what it encloses; some of the outer ones carry frames."""
        name, op_id, long = draw(st.sampled_from(NAMES)), self.next_id, draw(st.booleans())
        self.next_id += 1
        self.lines += block("LAUNCH", name, op_id) if long else [launch(name, op_id)]
        if draw(st.booleans()):
            self.lines.append(draw(st.sampled_from(["INFO::: MxNxK: 8x8x8", "", "text [OP", ";x"])))
        for _ in range(draw(st.integers(0, 2 if depth < 3 else 0))):
            self.op(draw, depth + 1)
        if draw(st.integers(0, 9)):  # one in ten is lost
            self.lines += block("COMPLETE", name, op_id) if long else [complete(name, op_id)]


@st.composite
def logs(draw: st.DrawFn) -> list[str]:
    """The log of one process: some steps, some text between them."""
    writer = Writer([])
    for step in range(draw(st.integers(1, 3))):
        writer.lines.append(MARK)
        for _ in range(draw(st.integers(1, 3))):
            writer.op(draw, 0)
        writer.lines.append(f"step {step} logits 64.0000")
    return writer.lines


def rows(of: pl.DataFrame, *extra: str) -> list[tuple[object, ...]]:
    return of.select(*COLUMNS, *extra).with_columns(pl.col("name", "detail").cast(pl.String)).rows()


@SLOW
@given(logs(), st.data())
def test_log_cut_anywhere_has_the_timeline_of_its_lines(lines: list[str], data: st.DataObject) -> None:
    """Byte for byte: each launch left is there as before, and nothing that was not there."""
    whole = text(lines)
    size = data.draw(st.integers(1, len(whole)))
    left = whole[:size]
    complete_lines = left.count(b"\n")

    def known(value: object) -> object:
        return value if isinstance(value, int) and value <= complete_lines else None

    def prefix(content: bytes) -> list[tuple[object, ...]]:
        found = rows(timeline(content, marks=True).ops, "step")
        return [
            (*row[:4], known(row[4]), known(row[5]), row[6])
            for row in found
            if isinstance(row[0], int) and row[0] <= complete_lines
        ]

    assert prefix(left) == prefix(whole)


@SLOW
@given(logs(), logs(), st.randoms(use_true_random=False))
def test_shuffled_interleaving_of_two_tagged_processes_keeps_both_timelines(
    one: list[str], other: list[str], dice: st.DrawFn
) -> None:
    """Each process has the ops, parents, depths and steps that it has alone."""
    order = [0] * len(one) + [1] * len(other)
    dice.shuffle(order)  # type: ignore[attr-defined]
    writers = [iter(one), iter(other)]
    woven = [f"[rank{rank}]: {next(writers[rank])}" for rank in order]
    places = [[number for number, rank in enumerate(order, start=1) if rank == own] for own in (0, 1)]
    both = timeline(woven, marks=True)
    assert not both.untagged_writers
    for rank, alone in enumerate((one, other)):
        expected = timeline(alone, marks=True).ops
        found = both.ops.filter(pl.col("process") == f"rank{rank}")
        moved = dict(enumerate(places[rank], start=1))
        lines = ["launch_line", "completion_line", "body_last"]
        expected = expected.with_columns(pl.col(lines).replace_strict(moved, return_dtype=pl.UInt32))
        extra = ("parent", "depth", "step", "run")
        assert rows(found, *extra) == rows(expected, *extra)

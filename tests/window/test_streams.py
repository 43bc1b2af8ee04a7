"""Several streams: a proof clears the earlier launches of its own stream only (design.md rule 4)."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

from analyzer.timeline.build import build_timeline
from analyzer.window.borders import Span, find_span
from analyzer.window.streams import queue_of_proof, queues_of, with_queue
from tests.faults_made import fault
from tests.oplog import launch, loaded, mark_frame, pair
from tests.window.test_borders import STATEMENT

WORK = {
    "device_stream": pl.Int64(),
    "stream_device": pl.Int32(),
    "streams": pl.UInt32(),
    "to_host": pl.Boolean(),
}
Streams = Mapping[int, tuple[int | None, bool]]  # id -> stream, and whether it copies to the host
A, B = 7, 13
PROVEN = "logits 64.0"


def with_streams(ops: pl.DataFrame, streams: Streams) -> pl.DataFrame:
    """``TIMELINE`` as it is after ``profile.join.join_ops``."""
    rows = [streams.get(op, (None, False)) for op in ops["id"]]
    work = [
        (stream, 0 if stream is not None else None, 1 if stream is not None else None, copied)
        for stream, copied in rows
    ]
    return ops.hstack(pl.DataFrame(work, schema=WORK, orient="row"))


def spanned(lines: list[str], streams: Streams | None) -> tuple[Span, pl.DataFrame]:
    """The span of a report behind ``lines``, and the ops."""
    with loaded(lines) as one:
        ops = build_timeline(one.ops, mark_frame([])).ops
        ops = with_streams(ops, streams) if streams is not None else ops
        record = fault(line=len(lines) + 1, python=STATEMENT)
        return find_span(ops, record, None, one.reader, None), ops


def ids(rows: pl.DataFrame) -> list[int]:
    return rows["id"].to_list()


LOG = [
    *pair("custom__gather", 0),
    *pair("matmul", 1),
    *pair("to_host", 2),
    f"step 0 {PROVEN}",
    *pair("softmax", 3),
]
TWO = {0: (B, False), 1: (A, False), 2: (A, True), 3: (A, False)}


def test_a_proof_on_one_stream_does_not_clear_an_op_on_another() -> None:
    span, ops = spanned(LOG, TWO)
    assert ids(span.inside(ops)) == [0, 3]
    assert ids(span.cleared(ops)) == [1, 2]
    assert not span.proven
    assert "stream 7 of device 0: 'step 0 logits 64.0'" in span.begin.reason
    assert "stream 13 of device 0: no line proves" in span.begin.reason
    assert span.begin.line == LOG.index(f"step 0 {PROVEN}") + 1


@pytest.mark.parametrize("streams", [None, {op: (A, copied) for op, (_, copied) in TWO.items()}])
def test_with_one_queue_a_proof_clears_all_before_it(
    streams: Streams | None,
) -> None:
    span, ops = spanned(LOG, streams)
    assert ids(span.inside(ops)) == [3]
    assert ids(span.cleared(ops)) == [0, 1, 2]
    assert span.proven
    assert span.queues == ()


def test_each_stream_has_its_own_last_proof() -> None:
    lines = [
        *pair("a", 0), *pair("b", 1), *pair("to_host", 2), f"step 0 {PROVEN}",
        *pair("a", 3), *pair("b", 4), *pair("to_host", 5), f"step 1 {PROVEN}", launch("c", 6),
    ]  # fmt: skip
    streams = {
        0: (A, False),
        1: (B, False),
        2: (B, True),
        3: (A, False),
        4: (B, False),
        5: (A, True),
        6: (B, False),
    }
    span, ops = spanned(lines, streams)
    assert ids(span.inside(ops)) == [4, 6]
    assert ids(span.cleared(ops)) == [0, 1, 2, 3, 5]
    assert span.proven


def test_an_op_of_unknown_stream_is_cleared_only_where_all_streams_are() -> None:
    """It can have run on any of them."""
    lines = [
        *pair("a", 0),
        *pair("x", 1),
        *pair("b", 2),
        *pair("to_host", 3),
        f"step 0 {PROVEN}",
        launch("c", 4),
    ]
    streams: Streams = {0: (B, False), 2: (A, False), 3: (A, True), 4: (A, False)}
    span, ops = spanned(lines, streams)
    assert ids(span.inside(ops)) == [0, 1, 4]


def test_a_value_whose_copy_is_not_known_proves_nothing_between_streams() -> None:
    streams = {op: (stream, False) for op, (stream, _) in TWO.items()}
    span, ops = spanned(LOG, streams)
    assert ids(span.inside(ops)) == [0, 1, 2, 3]
    assert span.cleared(ops).is_empty()
    assert not span.proven


def test_streams_of_two_devices_with_one_number_are_two_queues() -> None:
    _, ops = spanned(LOG, TWO)
    both = ops.with_columns(pl.Series("stream_device", [1, 0, 0, 0], dtype=pl.Int32), device_stream=pl.lit(A))
    assert queues_of(with_queue(both)) == ["1:7", "0:7"]


def test_what_an_op_encloses_is_of_its_queue() -> None:
    """The outer graph op launches nothing itself; one that launches on two streams is of neither."""
    lines = [
        launch("graph", 0),
        *pair("inner", 1),
        "[OP] COMPLETE graph [id=0] target=gpu:0",
        launch("next", 2),
    ]
    _, ops = spanned(lines, {1: (B, False), 2: (A, False)})
    assert with_queue(ops)["queue"].to_list() == ["0:13", "0:13", "0:7"]
    two = ops.with_columns(pl.when(pl.col("id") == 1).then(2).otherwise("streams").alias("streams"))
    assert with_queue(two)["queue"].to_list() == [None, None, "0:7"]


def test_the_last_copy_before_a_value_is_the_one_that_read_it() -> None:
    from analyzer.window.proofs import Proof

    _, ops = spanned(LOG, {0: (B, True), 2: (A, True), 3: (B, True)})
    line = LOG.index(f"step 0 {PROVEN}") + 1
    proof = Proof(line=line, kind="value_line", text=PROVEN, number=0)
    assert queue_of_proof(ops, proof) == "0:7"
    early = Proof(line=1, kind="value_line", text=PROVEN, number=0)
    assert queue_of_proof(ops, early) is None

"""The window that device marks leave: the launches that no stream had finished (design.md rule 4).

Every launch before the last mark of its stream is sound. The first one behind it is the only one of that
stream that can have failed: a stream stops where it fails, and those behind never ran.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.knowledge import Knowledge
from analyzer.model import DeviceMark, FaultRecord, OpFacts
from analyzer.schema import Border, Cleared, Window
from analyzer.timeline.facts import gather_facts, op_ref
from analyzer.window.graphs import REPLAY, as_replayed, graph_of

PROOF = "device_mark"
_READ = 256  # ops of the window whose bodies are read: the first ones are the suspects


class MarkedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The launches of a process that its device had not finished.

    ``first``: facts of the first one of each stream; ``inside_graph``: launch line of an op of a CUDA graph
    -> facts of the replay that ran it. ``lines``: of the marks.
    """

    first: list[OpFacts]
    inside_graph: dict[int, OpFacts]
    window: Window
    cleared: Cleared
    lines: list[int]


def last_marks(known: Knowledge, ops: pl.DataFrame, fault: FaultRecord) -> list[DeviceMark]:
    """The latest marks of the process of ``ops`` at a fault, one a stream; empty = it has none."""
    own = [
        one for one in known.marks if one.source == int(ops["source"][0]) and one.process == ops["process"][0]
    ]
    before = [one for one in own if fault.source != one.source or one.line < fault.line] or own
    return list({one.stream: one for one in before}.values())


def marked_window(known: Knowledge, fault: FaultRecord, ops: pl.DataFrame) -> MarkedWindow | None:
    """The launches that no stream had finished; null = there are no marks, or all was finished.

    Args:
        known: All inputs.
        fault: The root fault.
        ops: ``TIMELINE`` of its process.
    """
    if ops.is_empty() or not (marks := last_marks(known, ops, fault)):
        return None
    ops = ops.filter(pl.col("run") == ops["run"][-1])
    streams = [one for one in marks if one.graph is None and one.left]
    wanted = {ident for one in streams for ident in one.left}
    inside = ops.filter(pl.col("id").is_in(list(wanted)))
    if inside.is_empty():
        return None
    facts = _facts(known, ops, inside, streams)
    first = [op for one in streams if (op := _first(one, facts)) is not None]
    graphs: dict[str | None, DeviceMark] = {
        one.graph: one for one in marks if one.graph is not None and one.left
    }
    found, inside_graph = [], {}
    for op in first:
        node = _node(known, ops, op, graphs)
        found.append(node or op)
        if node is not None:
            inside_graph[node.launch_line] = op
    if not found:
        return None
    return MarkedWindow(
        first=found,
        inside_graph=inside_graph,
        window=_window(inside, streams, fault),
        cleared=_cleared(ops, inside, marks),
        lines=sorted({one.line for one in marks}),
    )


def _facts(
    known: Knowledge, ops: pl.DataFrame, rows: pl.DataFrame, streams: Sequence[DeviceMark]
) -> dict[int, OpFacts]:
    """Facts of the first ops of each stream by id; one that another op launched stands for that one."""
    heads = [ident for one in streams for ident in one.left[: _READ // len(streams) + 1]]
    rows = rows.filter(pl.col("id").is_in(heads))
    outer = rows["parent"].drop_nulls().unique()
    rows = ops.filter(pl.col("id").is_in(rows["id"].implode()) | pl.col("id").is_in(outer.implode()))
    before = ops.filter(pl.col("launch_line") < rows["launch_line"].min())
    facts = gather_facts(rows, before, known.readers[int(ops["source"][0])], known.types)
    found = {op.ref.id: op for op in facts if op.ref.id is not None}
    inner = {ref.id: op for op in facts for ref in op.inner if ref.id is not None}
    return {**inner, **found}


def _first(stream: DeviceMark, facts: dict[int, OpFacts]) -> OpFacts | None:
    return next((facts[ident] for ident in stream.left if ident in facts), None)


def _node(
    known: Knowledge, ops: pl.DataFrame, replay: OpFacts, graphs: dict[str | None, DeviceMark]
) -> OpFacts | None:
    """The op of a replayed CUDA graph that the device had not finished; null = it is no replay."""
    graph = graphs.get(graph_of(replay))
    if replay.ref.name != REPLAY or graph is None:
        return None
    rows = ops.filter(pl.col("id").is_in(list(graph.left)))
    node = _first(graph, _facts(known, ops, rows, [graph])) if rows.height else None
    return as_replayed(node, replay) if node is not None else None


def _window(inside: pl.DataFrame, streams: Sequence[DeviceMark], fault: FaultRecord) -> Window:
    rows = inside.sort("launch_line")
    outer = rows.filter(pl.col("parent").is_null())
    steps = rows["step"].drop_nulls().unique().sort().to_list()
    devices = {one.device for one in streams}
    many = "" if len(streams) == 1 else f" of each of {len(streams)} streams"
    line = min(one.line for one in streams)
    return Window(
        first_op=op_ref(rows.row(0, named=True)),
        last_op=op_ref(rows.row(-1, named=True)),
        size=rows.height,
        size_outer=outer.height,
        steps=steps,
        device=devices.pop() if len(devices) == 1 else None,
        begin=Border(
            reason=f"the device marked the last launch{many} that it finished", line=line, proof=PROOF
        ),
        end=Border(reason="the fault was met here", line=fault.line),
        proven_begin=True,
        ops=[op_ref(row) for row in outer.head(_READ).iter_rows(named=True)],
    )


def _cleared(ops: pl.DataFrame, inside: pl.DataFrame, marks: Sequence[DeviceMark]) -> Cleared:
    sound = ops.height - inside.height
    if not sound:
        return Cleared(count=0, ops=[], reasons=[])
    many = "1 launch" if sound == 1 else f"{sound} launches"
    reason = f"{many}: the device had finished them, or they ran on the host (line {marks[0].line})"
    return Cleared(count=sound, ops=[], reasons=[reason])

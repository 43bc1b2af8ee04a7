"""CUDA graphs in an op log: which ops a replay ran (``record.ops.graphs``).

Ops of a capture carry ``capture=<graph>``, a replay ``graph=<graph>``: the ops stand in the log once, where
they were captured, and run at each replay.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.knowledge import Knowledge
from analyzer.model import OpFacts
from analyzer.timeline.facts import gather_facts

CAPTURE, REPLAY = "cuda_graph_capture", "cuda_graph_replay"
_CAPTURED_READ = 2_000  # ops behind the begin of a capture whose bodies are read


def graph_of(op: OpFacts) -> str | None:
    """The graph that an op replays or captures; null = it does neither."""
    return dict(op.detail.attributes).get("graph") if op.ref.name in {CAPTURE, REPLAY} else None


def captured_ops(known: Knowledge, ops: pl.DataFrame, graphs: set[str]) -> dict[str, list[OpFacts]]:
    """Facts of the ops of each graph, in the order of the capture.

    Args:
        known: All inputs.
        ops: ``TIMELINE`` of the process, one run.
        graphs: Names of the graphs that are asked for.
    """
    found: dict[str, list[OpFacts]] = {}
    begins = ops.filter(pl.col("name").cast(pl.String) == CAPTURE)
    if begins.is_empty() or not graphs:
        return found
    reader = known.readers[int(ops["source"][0])]
    for capture in gather_facts(begins, ops.clear(), reader, known.types):
        name = graph_of(capture)
        if name not in graphs or name is None:
            continue
        rows = ops.filter(pl.col("launch_line") > capture.launch_line).head(_CAPTURED_READ)
        facts = gather_facts(rows, ops.clear(), reader, known.types)
        found[name] = [op for op in facts if dict(op.detail.attributes).get("capture") == name]
    return found


def as_replayed(node: OpFacts, replay: OpFacts) -> OpFacts:
    """An op of a graph as one replay ran it: its step, and both lines: of the capture and of the replay."""
    ref = msgspec.structs.replace(node.ref, step=replay.ref.step)
    source = tuple(dict.fromkeys((*node.source, *replay.source)))
    return msgspec.structs.replace(node, ref=ref, source=source)


def with_graphs(known: Knowledge, ops: pl.DataFrame, facts: Sequence[OpFacts]) -> list[OpFacts]:
    """The ops of a window, each replay of a graph in it followed by the ops that it ran."""
    replays = {name for op in facts if op.ref.name == REPLAY and (name := graph_of(op)) is not None}
    if not replays:
        return list(facts)
    captured = captured_ops(known, ops, replays)
    told: list[OpFacts] = []
    for op in facts:
        told.append(op)
        if op.ref.name == REPLAY:
            told.extend(as_replayed(node, op) for node in captured.get(graph_of(op) or "", ()))
    return told

"""Assembles the published result from what the stages gave."""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer import __version__
from analyzer.accounting import account
from analyzer.ingest.load import Loaded
from analyzer.knowledge import Diagnosis
from analyzer.model import FaultRecord, ModeRecord, ScheduledRequest
from analyzer.readings import Readings
from analyzer.schema import (
    SCHEMA_VERSION,
    SEQUENCE_SHOWN,
    Impact,
    InputInfo,
    Modes,
    NanCoverage,
    NextStep,
    OpTotal,
    ProcessInfo,
    Result,
    TimelineInfo,
    TimingBasis,
)
from analyzer.timeline.build import Timeline
from analyzer.timeline.launches import is_kernel_launch
from analyzer.timeline.processes import owners_of
from analyzer.timeline.timing import op_totals, timing_basis
from analyzer.witness import witness_named, witnesses

SLOWEST = 10
IMPACT_SHOWN = 64  # requests of one step; the largest first


def modes_of(readings: Readings, timeline: Timeline) -> Modes:
    """Switches seen in any input. A mode that no text shows stays null."""
    values: dict[str, object] = {}
    nan_check: list[NanCoverage] = []
    for record in readings.records:
        if isinstance(record, ModeRecord):
            if isinstance(record.value, NanCoverage):
                nan_check.append(record.value)
            else:
                values.setdefault(record.name, record.value)
    faults = [record for record in readings.records if isinstance(record, FaultRecord)]
    if any(record.site == "launch_serialised" for record in faults):
        values["device_sync_mode"] = True
    max_ops = timeline.ops.filter(~is_kernel_launch())
    if any(record.stacks for record in faults) or max_ops["body_last"].drop_nulls().len():
        values["source_tracebacks"] = True
    if max_ops.height:
        values.setdefault("op_log_level", "TRACE")
    values.update({mode: True for one in faults if (mode := witness_named(one.witness).mode) is not None})
    return msgspec.convert({**values, "nan_check": []}, Modes) if not nan_check else msgspec.structs.replace(
        msgspec.convert(values, Modes), nan_check=nan_check
    )  # fmt: skip


def build_result(
    loaded: list[Loaded], readings: Readings, timeline: Timeline, diagnosis: Diagnosis, steps: list[NextStep]
) -> Result:
    """The published result of one analysis."""
    impact = _impact(readings)
    modes = modes_of(readings, timeline)
    return Result(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        inputs=[_input_info(one, readings) for one in loaded],
        accounting=account(loaded, readings),
        modes=modes,
        processes=_processes(timeline),
        faults=diagnosis.faults,
        window=diagnosis.window,
        cleared=diagnosis.cleared,
        suspects=diagnosis.suspects,
        conclusion=diagnosis.conclusion,
        timeline=_timeline_info(timeline, modes),
        next_steps=steps,
        replay=None,
        losses=readings.losses,
        losses_omitted=readings.losses_omitted,
        impact=impact[:IMPACT_SHOWN],
        impact_omitted=max(0, len(impact) - IMPACT_SHOWN),
    )


def _impact(readings: Readings) -> list[Impact]:
    """Requests that a server had in its batch when it failed, those with most tokens first."""
    found: dict[tuple[int, str], Impact] = {}
    for record in readings.records:
        if isinstance(record, ScheduledRequest):
            one = Impact(
                request_id=record.request_id, tokens=record.tokens, line=record.line, input=record.source
            )
            found.setdefault((record.source, record.request_id), one)
    return sorted(found.values(), key=lambda one: (-(one.tokens or 0), one.input, one.line))


def _input_info(one: Loaded, readings: Readings) -> InputInfo:
    found = readings.witnesses.get(one.source.index, [])
    notes = list(one.notes)
    if not found and not one.ops.height:
        tried = ", ".join(witness.name for witness in witnesses())
        notes.append(f"no witness recognised; tried: max_ops, {tried}")
    return InputInfo(
        path=one.source.name,
        size_bytes=one.source.size_bytes,
        lines=one.total_lines,
        compression=one.source.compression,
        witnesses=[*(["max_ops"] if one.ops.height else []), *found],
        envelopes=sorted({name for name in one.gated["envelope"].drop_nulls().unique().to_list() if name}),
        notes=notes,
    )


def _processes(timeline: Timeline) -> list[ProcessInfo]:
    ops, owners = timeline.ops, owners_of(timeline.ops)
    if len(owners) == 1:
        groups = pl.DataFrame([(*owners[0], ops.height, ops["run"].n_unique())], orient="row")
    else:
        groups = ops.group_by("source", "process", maintain_order=True).agg(
            pl.len().alias("ops"), pl.col("run").n_unique().alias("runs")
        )
    note = ["several writers without tags share this log"] if timeline.untagged_writers else []
    return [
        ProcessInfo(key=process, input=source, ops=ops, runs=runs, notes=note)
        for source, process, ops, runs in groups.iter_rows()
    ]


def _most(ops: pl.DataFrame, basis: TimingBasis) -> pl.DataFrame:
    """The ops with most time, or with most launches where there is no clock: name, count, total_ns."""
    if basis != "none":
        return op_totals(ops).head(SLOWEST).select("name", "count", "total_ns")
    counted = ops.group_by("name").len("count").with_columns(pl.col("name").cast(pl.String))
    most = counted.sort("count", "name", descending=[True, False]).head(SLOWEST)
    return most.with_columns(pl.lit(None, dtype=pl.Int64).alias("total_ns"))


def _timeline_info(timeline: Timeline, modes: Modes) -> TimelineInfo:
    """Totals; times only where stamps or a profile give them (observed.md 8)."""
    ops = timeline.ops
    basis = timing_basis(ops, sync_mode=modes.device_sync_mode)
    details = ops["detail"].unique().cast(pl.String).drop_nulls()
    targets = details.str.extract(r"target=([a-z]+:[0-9]+)").drop_nulls()
    steps = ops["step"].drop_nulls()
    totals = _most(ops, basis)
    return TimelineInfo(
        ops=ops.height,
        completed=ops.height - ops["completion_line"].null_count(),
        unmatched_completions=timeline.unmatched_completions,
        steps=steps.filter(steps >= 0).n_unique(),
        devices=targets.unique().sort().to_list(),
        timing_basis=basis,
        names=ops["name"].n_unique(),
        slowest=[
            OpTotal(name=name, count=count, total_ns=total if basis != "none" else None)
            for name, count, total in totals.iter_rows()
        ],
        sequence=ops["name"].unique(maintain_order=True).head(SEQUENCE_SHOWN).cast(pl.String).to_list(),
    )

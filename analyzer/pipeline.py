"""The whole analysis on one screen: source -> lines -> records -> timeline -> diagnosis -> result."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl

from analyzer import __version__
from analyzer.accounting import account
from analyzer.diagnosis.diagnose import diagnose
from analyzer.diagnosis.knowledge import Diagnosis, Knowledge
from analyzer.errors import UsageError
from analyzer.ingest.load import OPS_SCHEMA, Loaded, load
from analyzer.ingest.source import open_sources
from analyzer.ir import IrTypes, read_ir
from analyzer.model import Advice, FaultRecord, ModeRecord
from analyzer.readings import Readings, read_witnesses
from analyzer.schema import (
    SCHEMA_VERSION,
    InputInfo,
    Modes,
    NanCoverage,
    OpTotal,
    ProcessInfo,
    Result,
    TimelineInfo,
)
from analyzer.timeline.build import Timeline, build_timeline
from analyzer.witness import witnesses

SLOWEST = 10


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller can set. ``window`` = first and last line; ``progress`` is told each stage."""

    ir: tuple[Path, ...] = ()
    window: tuple[int, int] | None = None
    process: str | None = None
    progress: Callable[[str], None] | None = None


def analyze(paths: list[str], options: Options | None = None) -> Result:
    """Analyse the inputs together.

    Args:
        paths: Files in any order, ``-`` for standard input.
        options: See ``Options``.

    Raises:
        InputError: An input is missing, empty, binary or unreadable.
        UsageError: The window or the process does not exist.
    """
    options = options or Options()
    tell = options.progress or (lambda _stage: None)
    literals = [literal for witness in witnesses() for literal in witness.gates]
    with open_sources(paths) as sources, tempfile.TemporaryDirectory(prefix="trace-analyze-") as spool:
        tell("reading")
        loaded = [load(source, literals, Path(spool)) for source in sources]
        try:
            tell("witnesses")
            readings = read_witnesses(loaded)
            tell("timeline")
            timeline = _timeline(loaded, readings)
            _check_process(timeline, options)
            tell("diagnosis")
            types = read_ir(options.ir)
            diagnosis = diagnose(_knowledge(loaded, readings, timeline, types, options))
            return _result(loaded, readings, timeline, diagnosis)
        finally:
            for one in loaded:
                one.reader.close()


def _timeline(loaded: list[Loaded], readings: Readings) -> Timeline:
    ops = pl.concat([one.ops for one in loaded]) if loaded else pl.DataFrame(schema=OPS_SCHEMA)
    return build_timeline(ops, readings.step_marks)


def _check_process(timeline: Timeline, options: Options) -> None:
    if options.process is None:
        return
    known = timeline.ops["process"].unique().sort().to_list()
    if options.process not in known:
        names = ", ".join(repr(name) for name in known) or "none has op records"
        raise UsageError(f"--process {options.process!r}: no such process; the log has {names}")


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
    if any(record.stacks for record in faults) or timeline.ops["body_last"].drop_nulls().len():
        values["source_tracebacks"] = True
    if timeline.ops.height:
        values.setdefault("op_log_level", "TRACE")
    if any(record.witness == "coredump" for record in faults):
        values["coredump"] = True
    return msgspec.convert({**values, "nan_check": []}, Modes) if not nan_check else msgspec.structs.replace(
        msgspec.convert(values, Modes), nan_check=nan_check
    )  # fmt: skip


def _knowledge(
    loaded: list[Loaded], readings: Readings, timeline: Timeline, types: IrTypes, options: Options
) -> Knowledge:
    return Knowledge(
        timeline=timeline,
        records=[record for record in readings.records if isinstance(record, FaultRecord)],
        modes=modes_of(readings, timeline),
        advice=[record for record in readings.records if isinstance(record, Advice)],
        readers={one.source.index: one.reader for one in loaded},
        types=types.by_name,
        packages=types.packages,
        lines_window=options.window,
        process=options.process,
    )


def _result(loaded: list[Loaded], readings: Readings, timeline: Timeline, diagnosis: Diagnosis) -> Result:
    return Result(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        inputs=[_input_info(one, readings) for one in loaded],
        accounting=account(loaded, readings),
        modes=modes_of(readings, timeline),
        processes=_processes(timeline),
        faults=diagnosis.faults,
        window=diagnosis.window,
        cleared=diagnosis.cleared,
        suspects=diagnosis.suspects,
        conclusion=diagnosis.conclusion,
        timeline=_timeline_info(timeline),
        next_steps=diagnosis.next_steps,
        replay=None,
        losses=readings.losses,
        losses_omitted=readings.losses_omitted,
    )


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
    groups = timeline.ops.group_by("source", "process", maintain_order=True).agg(
        pl.len().alias("ops"), pl.col("run").n_unique().alias("runs")
    )
    note = ["several writers without tags share this log"] if timeline.untagged_writers else []
    return [
        ProcessInfo(key=process, input=source, ops=ops, runs=runs, notes=note)
        for source, process, ops, runs in groups.iter_rows()
    ]


def _timeline_info(timeline: Timeline) -> TimelineInfo:
    """Totals. Op logs carry no clock (observed.md 8), so no times are claimed here."""
    ops = timeline.ops
    totals = ops.group_by("name").len().sort("len", "name", descending=[True, False]).head(SLOWEST)
    targets = (
        ops["detail"].unique().cast(pl.String).drop_nulls().str.extract(r"target=([a-z]+:\d+)").drop_nulls()
    )
    return TimelineInfo(
        ops=ops.height,
        completed=ops.height - ops["completion_line"].null_count(),
        unmatched_completions=timeline.unmatched_completions,
        steps=int(ops["step"].max() or -1) + 1 if ops["step"].drop_nulls().len() else 0,  # type: ignore[arg-type]
        devices=targets.unique().sort().to_list(),
        timing_basis="none",
        names=ops["name"].n_unique(),
        slowest=[OpTotal(name=str(name), count=count) for name, count in totals.iter_rows()],
    )

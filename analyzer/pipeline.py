"""The whole analysis on one screen: source -> lines -> records -> timeline -> diagnosis -> result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import polars as pl

from analyzer.advice.advise import advise
from analyzer.errors import UsageError
from analyzer.incident.decide import decide
from analyzer.incident.incident import Incident
from analyzer.ingest.load import OPS_SCHEMA, Loaded, load
from analyzer.ingest.source import BinaryFormat, open_sources
from analyzer.ir import IrTypes, read_ir
from analyzer.knowledge import Knowledge
from analyzer.model import (
    Advice,
    CollectiveState,
    DeviceMark,
    FaultRecord,
    ServerStart,
    ServerState,
)
from analyzer.profile.join import Joined, join_ops, joined_work
from analyzer.profile.model import Profile
from analyzer.profile.read import read_profile
from analyzer.readings import Readings, read_witnesses
from analyzer.result import build_result, modes_of
from analyzer.schema import Result
from analyzer.scratch import scratch_folder
from analyzer.timeline.build import Timeline, build_timeline
from analyzer.timeline.launches import with_launches
from analyzer.verdict.chosen_window import with_asked_window
from analyzer.verdict.collectives import with_sizes
from analyzer.verdict.diagnose import diagnose
from analyzer.witness import witnesses


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller can set. ``window`` = first and last line; ``progress`` is told each stage.

    ``formats``: binary files that are read too.
    """

    ir: tuple[Path, ...] = ()
    profile: Path | None = None
    window: tuple[int, int] | None = None
    process: str | None = None
    progress: Callable[[str], None] | None = None
    formats: tuple[BinaryFormat, ...] = ()


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """A result with what it was made of, as long as the inputs are open.

    ``profile``, and what of it was ``joined`` to ops: null = none was given. Raw lines are read through
    ``excerpt``. ``known``: what the inference used, with the readers of all inputs; ``incident``: every
    decision about the faults.
    """

    result: Result
    timeline: Timeline
    loaded: list[Loaded]
    profile: Profile | None
    joined: Joined | None
    known: Knowledge
    incident: Incident
    options: Options

    def excerpt(self, source: int, first: int, last: int) -> list[str]:
        """Raw lines ``first`` to ``last`` of an input, fewer where the file ends."""
        return self.loaded[source].reader.raw(first, last)


def analyze(paths: list[str], options: Options | None = None) -> Result:
    """Analyse the inputs together; see ``open_analysis``."""
    with open_analysis(paths, options) as analysis:
        return analysis.result


@contextmanager
def open_analysis(paths: list[str], options: Options | None = None) -> Iterator[Analysis]:
    """Analyse the inputs together and keep them open.

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
    with (
        open_sources(paths, options.formats) as sources,
        scratch_folder() as spool,
    ):
        tell("reading")
        loaded = [load(source, literals, spool) for source in sources]
        try:
            tell("witnesses")
            readings = read_witnesses(loaded)
            tell("timeline")
            profile = read_profile(options.profile) if options.profile else None
            timeline = _timeline(loaded, readings)
            joined = None
            if profile is not None:
                timeline, joined = _with_profile(timeline, profile, loaded)
            _check_process(timeline, options)
            _check_window(timeline, options)
            tell("diagnosis")
            types = read_ir(options.ir)
            known = _knowledge(loaded, readings, timeline, types, options)
            incident = decide(known)
            found = diagnose(incident)
            steps = advise(incident, found)
            found = with_asked_window(found, known)
            result = build_result(loaded, readings, timeline, found, steps)
            yield Analysis(
                result=result,
                timeline=timeline,
                loaded=loaded,
                profile=profile,
                joined=joined,
                known=known,
                incident=incident,
                options=options,
            )
        finally:
            for one in loaded:
                one.reader.close()


def _timeline(loaded: list[Loaded], readings: Readings) -> Timeline:
    ops = pl.concat([one.ops for one in loaded]) if loaded else pl.DataFrame(schema=OPS_SCHEMA)
    ops = with_launches(ops, readings.kernels.launches)
    return build_timeline(ops, readings.step_marks)


def _with_profile(timeline: Timeline, profile: Profile, loaded: list[Loaded]) -> tuple[Timeline, Joined]:
    """The timeline with device times and streams; what was joined is a note of the input with the ops."""
    ops = join_ops(timeline.ops, profile)
    joined = joined_work(ops, profile)
    owner = int(ops["source"][0]) if ops.height else 0
    loaded[owner].notes.append(joined.text)
    return msgspec.structs.replace(timeline, ops=ops), joined


def _check_window(timeline: Timeline, options: Options) -> None:
    if options.window is None:
        return
    first, last = options.window
    inside = timeline.ops.filter(pl.col("launch_line").is_between(first, last))
    if inside.is_empty():
        lines = timeline.ops["launch_line"].sort()
        known = f"they stand in lines {lines[0]} to {lines[-1]}" if lines.len() else "there are none"
        raise UsageError(f"--window {first}:{last}: no op is launched there; {known}")


def _check_process(timeline: Timeline, options: Options) -> None:
    if options.process is None:
        return
    known = timeline.ops["process"].unique().sort().to_list()
    if options.process not in known:
        raise UsageError(f"--process {options.process!r}: no such process; {_processes(known)}")


def _processes(known: list[str]) -> str:
    """Which processes have ops; lines without a tag are of a process without a name."""
    names = ", ".join(repr(name) for name in known if name)
    if not names:
        return "no op record of the log carries the tag of one" if known else "the log has no op records"
    untagged = ", and some carry no tag" if "" in known else ""
    return f"the op records are of {names}{untagged}"


def _knowledge(
    loaded: list[Loaded], readings: Readings, timeline: Timeline, types: IrTypes, options: Options
) -> Knowledge:
    return Knowledge(
        timeline=timeline,
        records=[record for record in readings.records if isinstance(record, FaultRecord)],
        modes=modes_of(readings, timeline),
        advice=[record for record in readings.records if isinstance(record, Advice)],
        states=[record for record in readings.records if isinstance(record, ServerState)],
        starts=[record for record in readings.records if isinstance(record, ServerStart)],
        readers={one.source.index: one.reader for one in loaded},
        types=types.by_name,
        packages=types.packages,
        lines_window=options.window,
        process=options.process,
        collectives=with_sizes([one for one in readings.records if isinstance(one, CollectiveState)]),
        kernels=readings.kernels,
        marks=[record for record in readings.records if isinstance(record, DeviceMark)],
    )

"""Times, where the inputs have a clock: op totals and steps. Without one, a sentence and no axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.report.request import StepSpan
from analyzer.report.story.suspicion import bar_text
from analyzer.report.story.telling import Scene, cite_whole, counted, gap, inference, short
from analyzer.report.story.values import Bar, Bars, Block, Cite, Paragraph, Picture
from analyzer.schema import OpTotal

NS_PER_MS = 1_000_000
LABEL_CHARS = 28
BASIS = {
    "device": "times of the device",
    "host": "times of the host: how long the launch call took, not the kernel",
    "none": "no clock in this log",
}
STEPS_SHOWN = 24
SLOW_FACTOR = 1.5  # below this a step is called ordinary


def times(scene: Scene) -> Iterator[Block]:
    """Pictures of what took how long; one sentence where nothing is timed."""
    totals = [one for one in scene.result.timeline.slowest if one.total_ns is not None]
    steps = [one for one in scene.context.steps if one.start_ns is not None and one.end_ns is not None]
    if steps:
        yield _steps(scene, steps[-STEPS_SHOWN:])
    if totals:
        yield _totals(scene, totals)
    if not steps and not totals and scene.result.timeline.ops:
        yield Paragraph(sentences=(gap("No clock in this log: durations of steps and ops cannot be shown."),))


def _steps(scene: Scene, steps: Sequence[StepSpan]) -> Picture:
    window = scene.result.window
    failing = set(window.steps) if window else set()
    bars = tuple(
        Bar(label=f"step {one.step}", value=_milliseconds(one), marked=one.step in failing) for one in steps
    )
    cites = [
        Cite(input=one.input, line=one.first_line, last_line=one.last_line)
        for one in steps
        if one.step in failing
    ]
    usual = sorted(bar.value for bar in bars)[len(bars) // 2]
    worst = max((bar.value for bar in bars if bar.marked), default=0.0)
    told = f"{counted(len(bars), 'step')}, median {usual:,.1f} ms"
    if worst > SLOW_FACTOR * usual:
        told += f"; the failing step took {worst:,.1f} ms"
    elif worst:
        told += f"; the failing step is no outlier with {worst:,.1f} ms"
    return _picture("steps", "Duration of the steps", bars, f"{told}.", cites or cite_whole(scene.result))


def _milliseconds(one: StepSpan) -> float:
    return ((one.end_ns or 0) - (one.start_ns or 0)) / NS_PER_MS


def _totals(scene: Scene, totals: Sequence[OpTotal]) -> Picture:
    accused = {one.op.name for one in scene.result.suspects if one.rank == scene.result.conclusion.suspect}
    bars = tuple(
        Bar(
            label=f"{short(one.name, LABEL_CHARS)} ({one.count:,} calls)",
            value=(one.total_ns or 0) / NS_PER_MS,
            marked=one.name in accused,
        )
        for one in totals
    )
    basis = BASIS[scene.result.timeline.timing_basis]
    told = f"most time went to {bars[0].label}, {bars[0].value:,.1f} ms ({basis})."
    return _picture("op-times", "Time of the ops", bars, told, cite_whole(scene.result))


def _picture(name: str, title: str, bars: tuple[Bar, ...], told: str, cites: Sequence[Cite]) -> Picture:
    full = max(bar.value for bar in bars)
    return Picture(
        name=name,
        title=title,
        alt=f"{title}: {told}",
        text="\n".join(bar_text(bar, f"{bar.value:,.1f}", full) + " <" * bar.marked for bar in bars),
        chart=Bars(bars=bars, unit="milliseconds"),
        note=inference(f"{told[0].upper()}{told[1:]}", cites=cites),
    )

"""What the incident happened in, what to run next, and the raw lines."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.report.plain import plain
from analyzer.report.request import LINE_CHARS
from analyzer.report.story.telling import (
    Scene,
    accused_of,
    advice,
    cite_whole,
    clip,
    code,
    counted,
    fact,
    gap,
    mixed,
    omitted,
    root_of,
    words,
)
from analyzer.report.story.values import (
    Block,
    Cite,
    Command,
    Commands,
    Items,
    Paragraph,
    Raw,
    RawLine,
    Row,
    Section,
    Sentence,
    Table,
)
from analyzer.schema import Fault, Result

BEFORE_FAULT = 8
AFTER_FAULT = 12
AFTER_LAUNCH = 6  # the frames of an op record follow its launch line
AROUND_BORDER = 1
COMMAND_CHARS = 2_000
FAULTS_QUOTED = 3
SUSPECTS_QUOTED = 3
Range = tuple[int, int, int]


def environment(scene: Scene) -> Section:
    """Inputs, switches, and how much of the text was understood."""
    blocks: list[Block] = [_inputs(scene)]
    blocks += omitted(len(scene.result.inputs) - scene.detail.rows, "more input")
    processes = _processes(scene)
    if processes is not None:
        blocks += [processes, *omitted(len(scene.result.processes) - scene.detail.rows, "more process")]
    blocks.append(Items(sentences=(*_modes(scene), *_read(scene))))
    return Section(id="environment", title="Environment and modes", blocks=tuple(blocks))


def _inputs(scene: Scene) -> Table:
    rows = tuple(
        Row(
            cells=(
                (code(one.path, 160),),
                (words("standard input" if one.size_bytes is None else f"{one.size_bytes:,} bytes"),),
                (words(f"{one.lines:,}"),),
                (words(", ".join(one.witnesses) or "none known"),),
                (words("; ".join(filter(None, [*one.envelopes, one.compression, *one.notes]))),),
            ),
            cites=(Cite(input=at),),
        )
        for at, one in enumerate(scene.result.inputs[: scene.detail.rows])
    )
    columns = ("input", "size", "lines read", "programs recognised", "notes", "cited as")
    return Table(caption="Inputs", columns=columns, rows=rows)


def _processes(scene: Scene) -> Table | None:
    known = scene.result.processes
    if len(known) < 2:
        return None
    rows = tuple(
        Row(
            cells=(
                (code(one.key or "(untagged)", 80),),
                (words("not told" if one.pid is None else str(one.pid)),),
                (words("not told" if one.rank is None else str(one.rank)),),
                (words(f"{one.ops:,}"),),
            ),
            cites=(Cite(input=one.input),),
        )
        for one in known[: scene.detail.rows]
    )
    return Table(caption="Processes", columns=("process", "pid", "rank", "launches", "input"), rows=rows)


def _modes(scene: Scene) -> Iterator[Sentence]:
    modes, whole = scene.result.modes, cite_whole(scene.result)
    flags = {
        "device-sync-mode": modes.device_sync_mode,
        "launch blocking": modes.launch_blocking,
        "GPU core dumps": modes.coredump,
        "source tracebacks": modes.source_tracebacks,
    }
    known = [f"{name} {'on' if value else 'off'}" for name, value in flags.items() if value is not None]
    known += [f"op log {modes.op_log_level}"] if modes.op_log_level else []
    if known:
        yield fact(f"Switches: {', '.join(known)}.", cites=whole)
    unknown = [name for name, value in flags.items() if value is None]
    if unknown:
        yield gap(f"Not told by these inputs: {', '.join(unknown)}.")
    for check in modes.nan_check:
        text = f"NaN check: {check.checked} of {check.of} float outputs, stride {check.stride}, of graph "
        yield fact(text, code(check.graph), cites=[Cite(input=0, line=check.line)])


def _read(scene: Scene) -> Iterator[Sentence]:
    result = scene.result
    counts, known, whole = result.accounting, result.timeline, cite_whole(result)
    yield fact(
        f"{counted(counts.total_lines, 'line')} read: {counts.parsed:,} parsed, {counts.continuation:,} "
        f"continuation, {counts.ignored:,} ignored, {counts.unrecognised:,} unrecognised.",
        cites=whole,
    )
    if known.ops:
        sizes = f"{counted(known.ops, 'launch')} of {known.names:,} ops in {counted(known.steps, 'step')}"
        yield fact(f"{sizes}; {known.completed:,} with a completion record.", cites=whole)
    lost = sum(loss.count for loss in result.losses) + result.losses_omitted
    if lost:
        first = result.losses[0] if result.losses else None
        cites = [Cite(input=first.input, line=first.line)] if first else whole
        why = f"; the first: {first.why}" if first else ""
        told = f"{counted(lost, 'text')} of known programs not understood{why}."
        yield fact(*mixed(scene, told), cites=cites)


def next_commands(scene: Scene) -> Section | None:
    """What to run, cheapest first."""
    steps = scene.result.next_steps
    if not steps:
        return None
    commands = tuple(
        Command(
            why=advice(*mixed(scene, step.why[:1].upper() + step.why[1:])),
            command=plain(clip(step.command, COMMAND_CHARS)),
        )
        for step in steps
    )
    return Section(id="next", title="Run next", blocks=(Commands(commands=commands),))


def excerpts_wanted(result: Result) -> list[Range]:
    """``(input, first line, last line)`` that the appendix quotes, merged, in order.

    Known before any report is made, so that a caller who cannot read its input twice can keep them.
    """
    roots = [one for one in result.faults if one.role == "root"]
    wanted = [_fault_range(fault) for fault in roots[:FAULTS_QUOTED] or result.faults[:1]]
    window = result.window
    if window is not None and window.begin.line is not None:
        at = window.begin.line
        wanted.append((window.first_op.input, at - AROUND_BORDER, at + AROUND_BORDER))
    ranked = sorted(result.suspects, key=lambda one: one.rank)[:SUSPECTS_QUOTED]
    ops = [one.op for one in ranked]
    wanted += [(op.input, op.line, op.line + AFTER_LAUNCH) for op in ops if op.line is not None]
    return _merged([(source, max(first, 1), last) for source, first, last in wanted])


def _fault_range(fault: Fault) -> Range:
    last = min(fault.last_line, fault.line + AFTER_FAULT) + AFTER_FAULT  # a block can be thousands of lines
    return fault.input, fault.line - BEFORE_FAULT, last


def _merged(ranges: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for source, first, last in sorted(ranges):
        if merged and merged[-1][0] == source and first <= merged[-1][2] + 1:
            merged[-1] = (source, merged[-1][1], max(last, merged[-1][2]))
        else:
            merged.append((source, first, last))
    return merged


def appendix(scene: Scene) -> Section:
    """The cited lines as they stand in the inputs."""
    left = scene.detail.raw_lines
    cited = _cited(scene.result)
    blocks: list[Block] = []
    total = 0
    for source, first, last in _nearest(scene.result):
        lines = list(scene.context.excerpt(source, first, last))
        total += len(lines)
        shown = lines[: max(left, 0)]
        left -= len(shown)
        if shown:
            blocks.append(Raw(input=source, lines=_raw(shown, source, first, cited)))
    blocks.sort(key=lambda block: (block.input, block.lines[0].number) if isinstance(block, Raw) else (0, 0))
    if total == 0:
        blocks.append(Paragraph(sentences=(gap("The raw lines are not at hand."),)))
    elif left <= 0 and total > scene.detail.raw_lines:
        over = total - scene.detail.raw_lines
        blocks.append(Paragraph(sentences=(gap(f"{counted(over, 'more raw line')} left out."),)))
    return Section(id="appendix", title="Appendix: raw lines", blocks=tuple(blocks))


def _nearest(result: Result) -> list[Range]:
    """Ranges with the fault first, so that a short report keeps that one."""
    root = root_of(result)

    def far(wanted: Range) -> tuple[bool, Range]:
        source, first, last = wanted
        return root is None or source != root.input or not first <= root.line <= last, wanted

    return sorted(excerpts_wanted(result), key=far)


def _raw(lines: list[str], source: int, first: int, cited: set[tuple[int, int]]) -> tuple[RawLine, ...]:
    return tuple(
        RawLine(number=number, text=plain(clip(line, LINE_CHARS)), marked=(source, number) in cited)
        for number, line in enumerate(lines, first)
    )


def _cited(result: Result) -> set[tuple[int, int]]:
    cited = {(one.input, one.line) for one in result.faults}
    accused = accused_of(result)
    ranked = sorted(result.suspects, key=lambda one: one.rank)[:SUSPECTS_QUOTED]
    for suspect in [*ranked, *([accused] if accused else [])]:
        cited.add((suspect.op.input, suspect.op.line or 0))
        cited |= {(suspect.op.input, line) for reason in suspect.reasons for line in reason.lines}
    if result.window is not None:
        cited.add((result.window.first_op.input, result.window.begin.line or 0))
    return cited

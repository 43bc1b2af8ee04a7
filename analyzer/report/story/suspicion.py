"""Who can be guilty and why, and who cannot."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.report.story.failure import frame_text
from analyzer.report.story.telling import (
    Scene,
    cite_fault,
    cite_lines,
    cite_op,
    cite_whole,
    code,
    counted,
    fact,
    gap,
    inference,
    mixed,
    named,
    percent,
    root_of,
    short,
    strong,
    with_lines,
    words,
)
from analyzer.report.story.values import (
    Bar,
    Bars,
    Block,
    Cite,
    Entries,
    Entry,
    Items,
    Paragraph,
    Part,
    Picture,
    Row,
    Section,
    Sentence,
    Table,
)
from analyzer.schema import Border, Suspect, TensorInfo, Window

WEIGHTS_TOLD = (
    "The number before a reason is its weight (natural log-odds): "
    "inferred from many public reports of faults, not measured."
)
BAR_CHARS = 24
LABEL_CHARS = 32
BARS_SHOWN = 6
BARS_FROM = 2  # one suspect needs no picture


def suspects(scene: Scene) -> Section | None:
    """The window and its ops, first suspect first."""
    ranked = sorted(scene.result.suspects, key=lambda one: one.rank)
    window = scene.result.window
    if not ranked and window is None:
        return None
    blocks: list[Block] = [Paragraph(sentences=(_window(scene, window),))] if window else []
    if len(ranked) >= BARS_FROM:
        blocks.append(_shares(scene, ranked))
    shown = ranked[: scene.detail.suspects]
    if shown:
        blocks.append(Paragraph(sentences=(gap(WEIGHTS_TOLD),)))
        blocks.append(Entries(entries=tuple(_entry(scene, one) for one in shown)))
    others = ranked[scene.detail.suspects :]
    if others:
        blocks.append(_others(others[: scene.detail.rows]))
    rest = others[scene.detail.rows :]
    if rest:
        share = percent(sum(one.share for one in rest))
        told = f"{counted(len(rest), 'more suspect')}, {share} of the suspicion together, not shown."
        blocks.append(Paragraph(sentences=(inference(told, cites=_spread(scene, rest)),)))
    return Section(id="suspects", title="Suspects", blocks=tuple(blocks))


def _spread(scene: Scene, group: list[Suspect]) -> tuple[Cite, ...]:
    return cite_op(group[0].op) + cite_op(group[-1].op) or _fallback(scene)


def _fallback(scene: Scene) -> tuple[Cite, ...]:
    root = root_of(scene.result)
    return (cite_fault(root),) if root is not None else cite_whole(scene.result)


def _window(scene: Scene, window: Window) -> Sentence:
    sizes = f"{counted(window.size_outer, 'outer launch')} of {window.size:,} "
    steps = f"in step {_span(window.steps)} " if window.steps else ""
    where = f"on {window.device} " if window.device else ""
    begin = "" if window.proven_begin else "not proven: "
    head = f"{sizes}{steps}{where}can be guilty. The window begins there because: {begin}"
    first = window.first_op
    cites = (*cite_op(first), *cite_op(window.last_op), *_border(first.input, window.begin))
    tail = mixed(scene, f"{window.begin.reason}; it ends because: {window.end.reason}.")
    return inference(strong("Window: "), head, *tail, cites=cites or _fallback(scene))


def _border(source: int, border: Border) -> tuple[Cite, ...]:
    return cite_lines(source, [border.line]) if border.line is not None else ()


def _span(steps: list[int]) -> str:
    return str(steps[0]) if len(steps) == 1 else f"{min(steps)} to {max(steps)}"


def _entry(scene: Scene, suspect: Suspect) -> Entry:
    head = inference(
        strong(f"{suspect.rank}. "),
        *named(scene, suspect.op),
        words(", "),
        strong(percent(suspect.share)),
        cites=cite_op(suspect.op) or _fallback(scene),
    )
    body = (*_places(scene, suspect), *_reasons(scene, suspect))
    return Entry(head=head, body=body, share=suspect.share)


def _places(scene: Scene, suspect: Suspect) -> Iterator[Sentence]:
    cites = cite_op(suspect.op) or _fallback(scene)
    for frame in suspect.source[: scene.detail.sources]:
        text: tuple[Part, ...] = (words(": "), code(frame.text.strip())) if frame.text else ()
        yield fact("Made at ", code(frame_text(frame)), *text, cites=cites)
    rest = len(suspect.source) - scene.detail.sources
    if rest > 0:
        yield fact(f"{counted(rest, 'more source line')} not shown.", cites=cites)
    if suspect.tensors:
        shapes = ", ".join(_shape(tensor) for tensor in suspect.tensors[:6])
        more = len(suspect.tensors) - 6
        tail = f" and {more} more" if more > 0 else ""
        yield fact("Operands: ", code(shapes), f"{tail}.", cites=cites)


def _shape(tensor: TensorInfo) -> str:
    sizes = "x".join("?" if size is None else str(size) for size in tensor.shape)
    return f"{tensor.role} {tensor.dtype}[{sizes}]"


def _reasons(scene: Scene, suspect: Suspect) -> Iterator[Sentence]:
    strongest = sorted(suspect.reasons, key=lambda reason: -abs(reason.weight))
    for reason in strongest[: scene.detail.reasons]:
        cites = cite_lines(suspect.op.input, reason.lines) or cite_op(suspect.op) or _fallback(scene)
        sign = f"{reason.weight:+.1f} " if reason.weight else "±0 "
        yield inference(strong(sign), *mixed(scene, reason.text), cites=cites)
    rest = len(strongest) - scene.detail.reasons
    if rest > 0:
        cites = cite_op(suspect.op) or _fallback(scene)
        yield inference(f"{counted(rest, 'weaker reason')} not shown.", cites=cites)


def _others(ranked: list[Suspect]) -> Table:
    """One row each for suspects that little speaks for."""
    rows = tuple(
        Row(
            cells=(
                (words(str(one.rank)),),
                (code(one.op.name, 80),),
                (words("" if one.op.id is None else str(one.op.id)),),
                (words(percent(one.share)),),
                (code(frame_text(one.source[0]), 80),) if one.source else (words("not told"),),
            ),
            cites=cite_op(one.op),
        )
        for one in ranked
    )
    columns = ("rank", "op", "id", "share", "made at", "lines")
    return Table(
        caption="Other suspects", columns=columns, rows=rows, summary=f"{counted(len(rows), 'other suspect')}"
    )


def _shares(scene: Scene, ranked: list[Suspect]) -> Picture:
    shown, rest = ranked[:BARS_SHOWN], ranked[BARS_SHOWN:]
    accused = scene.result.conclusion.suspect
    bars = [Bar(label=_bar_label(one), value=one.share, marked=one.rank == accused) for one in shown]
    if rest:
        bars.append(Bar(label=f"{len(rest):,} more together", value=sum(one.share for one in rest)))
    top = shown[0]
    others = counted(len(ranked) - 1, "other op")
    alt = f"{_bar_label(top)} has {percent(top.share)}; {others} the rest."
    return Picture(
        name="shares",
        title="Share of the suspicion",
        alt=alt,
        text="\n".join(bar_text(bar, percent(bar.value), 1.0) for bar in bars),
        chart=Bars(bars=tuple(bars), unit="share"),
    )


def _bar_label(one: Suspect) -> str:
    number = "" if one.op.id is None else f" (id {one.op.id})"
    return f"{one.rank}. {short(one.op.name, LABEL_CHARS)}{number}"


def bar_text(bar: Bar, value: str, full: float) -> str:
    """One bar in characters."""
    filled = round(BAR_CHARS * bar.value / full) if full > 0 else 0
    return f"{'█' * filled}{'·' * (BAR_CHARS - filled)} {value:>8}  {bar.label}"


def ruled_out(scene: Scene) -> Section | None:
    """Who was shown innocent, and by what."""
    cleared = scene.result.cleared
    if not cleared.count:
        return None
    window = scene.result.window
    base = _border(window.first_op.input, window.begin) if window else ()
    cites = base or _fallback(scene)
    told = inference(strong(f"{counted(cleared.count, 'launch')} shown innocent."), cites=cites)
    source = window.first_op.input if window else 0
    reasons = [with_lines(scene, source, reason, cites) for reason in cleared.reasons]
    more = [inference(*mixed(scene, reason), cites=own) for reason, own in reasons]
    more += [
        inference(*named(scene, one.op), *mixed(scene, f": {one.reason}"), cites=cite_op(one.op) or cites)
        for one in cleared.ops[: scene.detail.cleared]
    ]
    rest = len(cleared.ops) - scene.detail.cleared
    if rest > 0:
        more.append(inference(f"{counted(rest, 'more op')} cleared by name, not shown.", cites=cites))
    blocks: list[Block] = [Paragraph(sentences=(told,)), *([Items(sentences=tuple(more))] if more else [])]
    return Section(id="ruled_out", title="Ruled out", blocks=tuple(blocks))

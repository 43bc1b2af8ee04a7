"""When it happened and where: timeline of the incident, root fault, cascade."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from analyzer.report.story.marks import launch_order, strip_text
from analyzer.report.story.replayed import blamed
from analyzer.report.story.telling import (
    QUOTE_CHARS,
    Scene,
    accused_of,
    cite_fault,
    cite_lines,
    cite_op,
    cite_whole,
    code,
    counted,
    fact,
    fault_as_logged,
    fault_part,
    gap,
    inference,
    kind_words,
    mixed,
    named,
    percent,
    root_of,
    strong,
    words,
)
from analyzer.report.story.values import (
    Block,
    Cite,
    Items,
    Paragraph,
    Part,
    Picture,
    Row,
    Section,
    Sentence,
    Strip,
    Table,
)
from analyzer.schema import ASKED_WINDOW, Fault, SourceFrame

ROLE_WORDS = {
    "root": "root fault reported",
    "cascade": "report caused by the root fault",
    "teardown": "error while shutting down",
    "bystander": "beside the root fault",
    "advice": "advice only",
}
FOLDED_WORDS = {
    "cascade": "caused by the root fault",
    "teardown": "errors while shutting down",
    "victim": "victims of the failure elsewhere",
    "bystander": "beside the root fault",
}
_VICTIM = ("victim of ", "hands on ")  # how the reason of a bystander's role begins, if somebody else failed
BELIEF = {
    "exact": "The place it names is where it happened",
    "late": "The place it names is only where the fault was met; it happened earlier",
}
HAPPENED = {"likely": "Happened, likely, at: ", "ranked": "Cannot be told; first of the ranking: "}
NO_YEAR = 1970  # where clocks without a date or a year begin
Event = tuple[tuple[int, int], str | None, str, tuple[Part, ...], tuple[Cite, ...], bool]


def timeline(scene: Scene) -> Section:
    """What came after what, by the lines of the inputs."""
    events = sorted(_events(scene), key=lambda event: event[0])
    clocked = any(event[1] for event in events)
    shown = _around(events, scene.detail.rows)
    rows = [
        Row(
            cells=(*(((words(at or ""),),) if clocked else ()), (words(what),), told),
            cites=cites,
            marked=marked,
        )
        for _, at, what, told, cites, marked in shown
    ]
    blocks: list[Block] = []
    if rows:
        columns = ("time as logged",) * clocked + ("event", "what", "lines")
        blocks.append(Table(caption="In the order of the log", columns=columns, rows=tuple(rows)))
    if len(shown) < len(events):
        blocks.append(Paragraph(sentences=(gap(f"{len(events) - len(shown):,} more events are left out."),)))
    if not clocked:
        blocks.append(Paragraph(sentences=(gap("No clock in these records: order, not time."),)))
    return Section(id="timeline", title="Timeline of the incident", blocks=tuple(blocks))


def _around(events: list[Event], limit: int) -> list[Event]:
    """The marked events and what comes first."""
    kept = [event for event in events if event[5]]
    rest = [event for event in events if not event[5]][: max(limit - len(kept), 0)]
    return sorted(kept + rest, key=lambda event: event[0])


def _events(scene: Scene) -> Iterator[Event]:
    window, accused = scene.result.window, accused_of(scene.result)
    if window is not None and window.begin.line is not None:
        at = (window.first_op.input, window.begin.line)
        proof = mixed(scene, window.begin.reason)
        yield at, None, "last sound work", proof, cite_lines(*_one(at)), False
    if window is not None and window.first_op.line is not None:
        op = window.first_op
        yield (op.input, op.line or 0), None, "window begins", (code(op.name, 80),), cite_op(op), False
    for suspect in [accused] if accused is not None and accused.op.line is not None else []:
        op = suspect.op
        what = f"suspect {suspect.rank} launched"
        yield (op.input, op.line or 0), None, what, (code(op.name, 120),), cite_op(op), True
    for fault in scene.result.faults:
        what = role_words(fault) + (f", {_times(fault.count)}" if fault.count > 1 else "")
        told = (fault_part(scene, fault, 160),)
        yield (fault.input, fault.line), _clock(fault), what, told, (cite_fault(fault),), fault.role == "root"


def role_words(fault: Fault) -> str:
    """What a fault is beside the root one."""
    return "victim of the failure elsewhere" if _is_victim(fault) else ROLE_WORDS[fault.role]


def _is_victim(fault: Fault) -> bool:
    return fault.role == "bystander" and fault.role_reason.startswith(_VICTIM)


def _one(at: tuple[int, int]) -> tuple[int, list[int]]:
    return at[0], [at[1]]


def _clock(fault: Fault) -> str | None:
    if fault.time_ns is None:
        return None
    seconds, rest = divmod(fault.time_ns, 1_000_000_000)
    stamp = datetime.fromtimestamp(seconds, tz=UTC)
    clock = f"{stamp:%H:%M:%S}.{rest // 1_000_000:03d}"
    if stamp.year > NO_YEAR:
        return f"{stamp:%Y-%m-%d} {clock}"
    return clock if (stamp.month, stamp.day) == (1, 1) else f"{stamp:%m-%d} {clock}"


def fault(scene: Scene) -> Section:
    """The root fault: what it was, where it was reported, where it happened."""
    title = "Root fault: where it was reported, where it happened"
    root = root_of(scene.result)
    if root is None:
        none = inference("No root fault in these inputs.", cites=cite_whole(scene.result))
        return Section(id="fault", title=title, blocks=(Paragraph(sentences=(none,)),))
    blocks: list[Block] = [Items(sentences=tuple(_told(scene, root)))]
    strip = launch_order(scene)
    if strip is not None:
        blocks.append(_order_picture(scene, strip))
    return Section(id="fault", title=title, blocks=tuple(blocks))


def _told(scene: Scene, root: Fault) -> Iterator[Sentence]:
    cites = [_cite_root(scene, root)]
    number = " ".join(str(part) for part in (root.vendor, root.code, root.name) if part is not None)
    what = (strong(kind_words(root)), *((words(f", {number}"),) if number else ()), words(": "))
    yield fact(*what, fault_part(scene, root, scene.detail.name_chars), cites=cites)
    logged = fault_as_logged(scene, root)
    if logged is not None and logged != root.text:
        quote = msgspec.structs.replace(cites[0], quote=logged[:QUOTE_CHARS])
        yield fact(strong("The log says: "), code(logged, scene.detail.name_chars), cites=[quote])
    yield fact(strong("Reported at: "), *_reported(scene, root), cites=[*cites, *_op_cite(root)])
    yield inference(
        strong(f"Trust: {root.trust}. "), BELIEF[root.trust], *_why(scene, root.trust_reason), cites=cites
    )
    if root.role_reason:
        yield inference(strong("Root fault"), *_why(scene, root.role_reason), cites=cites)
    yield _happened(scene, root)
    others = [one for one in scene.result.faults if one.role == "root"][1:]
    if others:
        told = f"{counted(len(others), 'further root fault')} of other processes or of another cause."
        yield fact(told, cites=[cite_fault(one) for one in others[: scene.detail.faults]])


def _cite_root(scene: Scene, root: Fault) -> Cite:
    """With the quote where the text stands in the log word for word."""
    cite = cite_fault(root)
    same = fault_as_logged(scene, root) == root.text
    return msgspec.structs.replace(cite, quote=root.text[:QUOTE_CHARS]) if same else cite


def _why(scene: Scene, reason: str) -> tuple[Part, ...]:
    return (words(": "), *mixed(scene, reason), words(".")) if reason else (words("."),)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _op_cite(root: Fault) -> list[Cite]:
    line = root.reported_at.op_line
    return [] if line is None else [Cite(input=root.input, line=line)]


def _reported(scene: Scene, root: Fault) -> Iterator[Part]:
    at = root.reported_at
    kernel = at.kernel or root.kernel
    places: list[tuple[str, str]] = [("kernel ", kernel)] if kernel else []
    places += [("op id ", str(at.op_id))] if at.op_id is not None else []
    places += [("", at.site)] if at.site else []
    places += [("", frame_text(at.python))] if at.python else []
    if not places:
        yield words("no kernel, op or source line is named.")
    for number, (before, text) in enumerate(places):
        yield words((", " if number else "") + before)
        yield code(text, scene.detail.name_chars)
    yield words("." if places else "")


def frame_text(frame: SourceFrame) -> str:
    """``file:line in function``."""
    return f"{frame.file}:{frame.line} in {frame.function}"


def _happened(scene: Scene, root: Fault) -> Sentence:
    accused, window = accused_of(scene.result), scene.result.window
    head = strong("Happened at: ")
    if accused is not None:
        head = strong(HAPPENED.get(scene.result.conclusion.confidence, "Happened at: "))
        made = (words(", made at "), code(frame_text(accused.source[0]))) if accused.source else ()
        share = "" if accused.share >= 0.995 else f", {percent(accused.share)} of the suspicion"
        cites = cite_op(accused.op) or (cite_fault(root),)
        return inference(head, *named(scene, accused.op), *made, words(f"{share}."), cites=cites)
    done = scene.result.replay
    if done is not None and done.verdict == "confirmed" and done.op is not None:
        return inference(head, *blamed(scene, done.op), "; a replay confirmed it.", cites=[cite_fault(root)])
    if window is not None:
        size = f"one of {counted(window.size_outer, 'outer launch')} of the window; none of them stands out."
        if window.begin.reason.startswith(ASKED_WINDOW):
            size = "cannot be told: the window was chosen by hand."
        ends = (*cite_op(window.first_op), *cite_op(window.last_op))
        return inference(head, size, cites=ends or (cite_fault(root),))
    at = root.reported_at
    if root.trust == "exact" and any((at.kernel, root.kernel, at.op_id is not None, at.site, at.python)):
        return inference(head, "where it was reported; no op record leads further.", cites=[cite_fault(root)])
    return inference(head, "cannot be told from these inputs.", cites=[cite_fault(root)])


def _order_picture(scene: Scene, strip: Strip) -> Picture:
    cells = strip.cells
    inside = sum(cell.count for cell in cells if cell.kind in {"suspect", "other"})
    before = sum(cell.count for cell in cells if cell.kind == "cleared")
    first = min((cell for cell in cells if cell.rank), key=lambda cell: cell.rank or 0, default=None)
    told = f" Suspect 1 is {first.label} with {percent(first.share)}, line {first.line}." if first else ""
    report = next((cell for cell in cells if cell.kind == "report"), None)
    end = f" The report came at line {report.line}." if report else ""
    alt = (
        f"{counted(before, 'launch')} cleared, {counted(inside, 'launch')} in the window, the bar of each "
        f"as high as its share of the suspicion.{told}{end}"
    )
    note = gap("Left to right is the order of launches; this log has no clock for them.")
    return Picture(
        name="launch-order",
        title="Launch order: cleared work, window, report",
        alt=alt,
        text=strip_text(strip),
        chart=strip,
        note=None if any(one.launch_ns is not None for one in scene.context.window_ops) else note,
    )


def cascade(scene: Scene) -> Section | None:
    """What the root fault set off, folded."""
    after = [one for one in scene.result.faults if one.role not in {"root", "advice"}]
    if not after:
        return None
    blocks: list[Block] = []
    for told in dict.fromkeys(FOLDED_WORDS.values()):
        group = [one for one in after if _folded_words(one) == told]
        if group:
            blocks.append(_folded(scene, told, group))
    return Section(id="cascade", title="Cascade", blocks=tuple(blocks))


def _folded_words(fault: Fault) -> str:
    return FOLDED_WORDS["victim" if _is_victim(fault) else fault.role]


def _folded(scene: Scene, told: str, group: list[Fault]) -> Items:
    total, limit = sum(one.count for one in group), scene.detail.name_chars
    sentences = [
        fact(
            f"{kind_words(one)}, {_times(one.count)}: ",
            fault_part(scene, one, limit),
            cites=[cite_fault(one)],
        )
        for one in group[: scene.detail.faults]
    ]
    rest = group[scene.detail.faults :]
    if rest:
        more = f"{counted(len(rest), 'more text')}, {sum(one.count for one in rest):,} reports, not shown."
        sentences.append(fact(more, cites=[cite_fault(rest[0]), cite_fault(rest[-1])]))
    return Items(sentences=tuple(sentences), summary=f"{counted(total, 'report')}: {told}")

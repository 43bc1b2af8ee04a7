"""The launches of the window in order, and the launch-order picture: drawn and as monospaced text.

Order is the order of the launch records, not time: most op logs carry no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.report.request import ReportContext, WindowOp
from analyzer.report.story.telling import Scene, clip, counted, percent, root_of
from analyzer.report.story.values import Cell, Strip
from analyzer.report.terminal import plain
from analyzer.schema import OpRef, Result, Suspect

LEVELS = "▁▂▃▄▅▆▇█"
LABEL_CHARS = 48
Key = tuple[int, str, int | None, int | None]


def key_of(op: OpRef) -> Key:
    """What tells two launches apart."""
    return op.input, op.process, op.id, op.line


def window_ops(result: Result, context: ReportContext) -> tuple[WindowOp, ...]:
    """Launches of the window in order: the caller's list, the window's, or else the suspects."""
    if context.window_ops:
        return context.window_ops
    if result.window is not None and result.window.ops:
        return tuple(WindowOp(op=op) for op in result.window.ops)
    ops = {key_of(suspect.op): suspect.op for suspect in result.suspects}
    in_order = sorted(ops.values(), key=lambda op: (op.input, op.line or 0, op.id or 0))
    return tuple(WindowOp(op=op) for op in in_order)


def suspects_by_op(result: Result) -> dict[Key, Suspect]:
    """Each suspect under its launch."""
    return {key_of(suspect.op): suspect for suspect in result.suspects}


def lane_of(one: WindowOp) -> str:
    """Device and stream, as far as they are known."""
    lane = one.op.device or "device not told"
    return f"{lane} stream {one.stream}" if one.stream else lane


def launch_order(scene: Scene) -> Strip | None:
    """Cleared work, launches of the window, report. Null where no launch is known."""
    outer = [one for one in window_ops(scene.result, scene.context) if one.depth == 0]
    if not outer:
        return None
    return Strip(cells=(*_before(scene, outer), *_inside(scene, outer), *_after(scene, outer)))


def _before(scene: Scene, outer: Sequence[WindowOp]) -> list[Cell]:
    cleared, window = scene.result.cleared, scene.result.window
    before = cleared.count - len(cleared.ops)
    if before <= 0 or window is None:
        return []
    label = counted(before, "launch") + " cleared"
    return [Cell(kind="cleared", label=label, lane=lane_of(outer[0]), count=before, line=window.begin.line)]


def _inside(scene: Scene, outer: Sequence[WindowOp]) -> list[Cell]:
    """One cell an op; runs of ops without suspicion are folded when there are too many."""
    suspects = suspects_by_op(scene.result)
    top = {key for key, one in suspects.items() if one.rank <= max(scene.detail.cells // 2, 1)}
    fold = len(outer) > scene.detail.cells
    cells: list[Cell] = []
    for one in outer:
        key = key_of(one.op)
        suspect = suspects.get(key)
        if fold and key not in top:
            cells = _folded(cells, one)
            continue
        cells.append(_marked(one, suspect))
    return cells


def _marked(one: WindowOp, suspect: Suspect | None) -> Cell:
    label, lane, line = _label(one.op), lane_of(one), one.op.line
    if suspect is None:
        return Cell(kind="other", label=label, lane=lane, line=line)
    return Cell(kind="suspect", label=label, lane=lane, line=line, share=suspect.share, rank=suspect.rank)


def _label(op: OpRef) -> str:
    return plain(clip(op.name, LABEL_CHARS))


def _folded(cells: list[Cell], one: WindowOp) -> list[Cell]:
    last = cells[-1] if cells else None
    if last is None or last.kind != "other" or last.lane != lane_of(one):
        return [*cells, Cell(kind="other", label="1 launch", lane=lane_of(one), line=one.op.line)]
    count = last.count + 1
    merged = Cell(kind="other", label=counted(count, "launch"), lane=last.lane, count=count, line=last.line)
    return [*cells[:-1], merged]


def _after(scene: Scene, outer: Sequence[WindowOp]) -> list[Cell]:
    """Ops cleared by name that come after the first suspect, then the report."""
    begin = outer[0].op.line or 0
    late = [one.op for one in scene.result.cleared.ops if (one.op.line or 0) > begin]
    cells = [
        Cell(kind="cleared", label=_label(op), lane=lane_of(WindowOp(op=op)), line=op.line)
        for op in late[: scene.detail.cleared]
    ]
    root = root_of(scene.result)
    if root is not None:
        lane = lane_of(outer[-1])
        cells.append(Cell(kind="report", label=f"reported: {root.kind}", lane=lane, line=root.line))
    return cells


def strip_text(strip: Strip) -> str:
    """The picture in one font width, narrow enough for a chat window."""
    before = [cell for cell in strip.cells if cell.kind == "cleared" and cell.count > 1]
    inside = [cell for cell in strip.cells if cell.kind in {"suspect", "other"}]
    never_ran = [cell for cell in strip.cells if cell.kind == "cleared" and cell.count == 1]
    report = [cell for cell in strip.cells if cell.kind == "report"]
    left = f"[{before[0].count:,} cleared] " if before else ""
    marks = "".join(_level(cell) for cell in inside)
    right = ("-" * len(never_ran)) + (" X" if report else "")
    rows = [f"{left}|{marks}|{right}", *_pointers(left, inside)]
    rows += [f"  - {counted(len(never_ran), 'launch')} after the report: never ran"] if never_ran else []
    rows += [f"  X {report[0].label}{_at(report[0])}"] if report else []
    return "\n".join(["launch order ->", *rows])


def _at(cell: Cell) -> str:
    return "" if cell.line is None else f" (line {cell.line})"


def _level(cell: Cell) -> str:
    if cell.kind == "other" and cell.count > 1:
        return "~"
    return LEVELS[min(int(cell.share * len(LEVELS)), len(LEVELS) - 1)]


def _pointers(left: str, inside: Sequence[Cell]) -> list[str]:
    """A caret under the first suspect, and what it is."""
    first = min((cell for cell in inside if cell.rank), key=lambda cell: cell.rank or 0, default=None)
    if first is None:
        return []
    at = len(left) + 1 + inside.index(first)
    folded = sum(cell.count for cell in inside if cell.count > 1)
    told = f"suspect {first.rank}: {first.label}, {percent(first.share)}" + _at(first)
    rows = [" " * at + "^", f"  ^ {told}"]
    return rows + ([f"  ~ {counted(folded, 'launch')} folded"] if folded else [])

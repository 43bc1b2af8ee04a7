"""The launches of the window in order, and the launch-order picture: drawn and as monospaced text.

Order is the order of the launch records, not time: most op logs carry no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.report.plain import plain
from analyzer.report.request import ReportContext, WindowOp
from analyzer.report.story.telling import Scene, clip, counted, kind_words, percent, root_of
from analyzer.report.story.values import Cell, Strip
from analyzer.schema import OpRef, Result, Suspect

LEVELS = "▁▂▃▄▅▆▇█"
CELLS_FROM = 2  # one launch has no order
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
    """Cleared work, launches from the begin of the window on, report. Null where no order shows."""
    outer = [one for one in window_ops(scene.result, scene.context) if one.depth == 0]
    before, inside = (_before(scene, outer), _inside(scene, outer)) if outer else ([], [])
    if len(before) + len(inside) < CELLS_FROM:
        return None
    return Strip(cells=(*before, *inside, *_report(scene, outer)))


def _before(scene: Scene, outer: Sequence[WindowOp]) -> list[Cell]:
    """What was cleared by a proof, as one block."""
    cleared, window = scene.result.cleared, scene.result.window
    before = cleared.count - len(cleared.ops)
    if before <= 0 or window is None or window.begin.line is None:
        return []
    label = counted(before, "launch") + " cleared"
    return [Cell(kind="cleared", label=label, lane=lane_of(outer[0]), count=before, line=window.begin.line)]


def _inside(scene: Scene, outer: Sequence[WindowOp]) -> list[Cell]:
    """One cell an op; runs of ops without suspicion are folded when there are too many."""
    suspects = suspects_by_op(scene.result)
    cleared = _cleared_later(scene, outer)
    launches = [*outer, *cleared.values()]
    if all(one.op.line is not None for one in launches):
        launches.sort(key=lambda one: (one.op.input, one.op.line or 0))
    top = {key for key, one in suspects.items() if one.rank <= max(scene.detail.cells // 2, 1)}
    fold = len(launches) > scene.detail.cells
    cells: list[Cell] = []
    for one in launches:
        key = key_of(one.op)
        if fold and key not in top:
            cells = _folded(cells, one)
        elif key in cleared:
            cells.append(Cell(kind="cleared", label=_label(one.op), lane=lane_of(one), line=one.op.line))
        else:
            cells.append(_marked(one, suspects.get(key)))
    return cells


def _cleared_later(scene: Scene, outer: Sequence[WindowOp]) -> dict[Key, WindowOp]:
    """Ops cleared by name that were launched after the window began."""
    begin, device = outer[0].op.line or 0, outer[-1].op.device
    later = [one.op for one in scene.result.cleared.ops if (one.op.line or 0) > begin]
    placed = [op if op.device else msgspec.structs.replace(op, device=device) for op in later]
    return {key_of(op): WindowOp(op=op) for op in placed}


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


def _report(scene: Scene, outer: Sequence[WindowOp]) -> list[Cell]:
    root = root_of(scene.result)
    if root is None:
        return []
    return [
        Cell(kind="report", label=f"reported: {kind_words(root)}", lane=lane_of(outer[-1]), line=root.line)
    ]


def strip_text(strip: Strip) -> str:
    """The picture in one font width, narrow enough for a chat window."""
    before = [cell for cell in strip.cells if _is_block(cell)]
    inside = [cell for cell in strip.cells if cell.kind != "report" and not _is_block(cell)]
    report = [cell for cell in strip.cells if cell.kind == "report"]
    left = f"[{before[0].count:,} cleared] " if before else ""
    marks = "".join(_level(cell) for cell in inside)
    rows = [f"{left}|{marks}|{' X' if report else ''}", *_legend(left, inside)]
    rows += [f"  X {report[0].label}{_at(report[0])}"] if report else []
    return "\n".join(["launch order ->", *rows])


def _is_block(cell: Cell) -> bool:
    return cell.kind == "cleared" and cell.count > 1


def _at(cell: Cell) -> str:
    return "" if cell.line is None else f" (line {cell.line})"


def _level(cell: Cell) -> str:
    if cell.kind == "cleared":
        return "-"
    if cell.kind == "other" and cell.count > 1:
        return "~"
    return LEVELS[min(int(cell.share * len(LEVELS)), len(LEVELS) - 1)]


def _legend(left: str, inside: Sequence[Cell]) -> list[str]:
    """A caret under the first suspect, and what the signs mean."""
    rows: list[str] = []
    first = min((cell for cell in inside if cell.rank), key=lambda cell: cell.rank or 0, default=None)
    if first is not None:
        told = f"suspect {first.rank}: {first.label}, {percent(first.share)}" + _at(first)
        rows += [" " * (len(left) + 1 + inside.index(first)) + "^", f"  ^ {told}"]
    cleared = sum(cell.count for cell in inside if cell.kind == "cleared")
    folded = sum(cell.count for cell in inside if cell.kind == "other" and cell.count > 1)
    rows += [f"  - {counted(cleared, 'launch')} cleared by name"] if cleared else []
    return rows + ([f"  ~ {counted(folded, 'launch')} folded"] if folded else [])

"""The window for ui.perfetto.dev, as Chrome trace JSON: one track a device and stream.

Where the log has no clock, one launch is one microsecond wide, and the trace says so in its name and
in every event: order must not be read as time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from analyzer.errors import UsageError
from analyzer.report.plain import plain
from analyzer.report.request import ReportContext, WindowOp
from analyzer.report.story.marks import key_of, lane_of, suspects_by_op, window_ops
from analyzer.report.story.telling import clip, root_of
from analyzer.schema import Result

NS_PER_US = 1_000
NAME_CHARS = 300
PID = 1  # one track group; the real pid is in the arguments of each event
Event = dict[str, object]


def render(result: Result, context: ReportContext, limit_bytes: int | None = None) -> bytes:
    """The launches of the window as slices; suspects carry rank, share and reasons.

    Raises:
        UsageError: The trace is larger than the limit (half a trace would mislead).
    """
    ops = window_ops(result, context)
    clocked = bool(ops) and all(one.launch_ns is not None for one in ops)
    events = [*_tracks(ops, clocked=clocked), *_slices(result, ops, clocked=clocked)]
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "tool": f"trace-analyze {plain(result.tool_version)}",
            "clock": "as logged" if clocked else "none: 1 us = 1 launch, order and not time",
        },
    }
    data = (json.dumps(document, indent=1) + "\n").encode()
    if limit_bytes is not None and len(data) > limit_bytes:
        raise UsageError(f"--report-limit {limit_bytes}: the Perfetto trace needs {len(data)} bytes")
    return data


def _tracks(ops: Sequence[WindowOp], *, clocked: bool) -> Iterator[Event]:
    name = "window" if clocked else "window (order, not time)"
    yield {"ph": "M", "name": "process_name", "pid": PID, "tid": 0, "args": {"name": name}}
    for tid, lane in enumerate(_lanes(ops), 1):
        yield {"ph": "M", "name": "thread_name", "pid": PID, "tid": tid, "args": {"name": lane}}


def _lanes(ops: Sequence[WindowOp]) -> list[str]:
    return list(dict.fromkeys(plain(lane_of(one)) for one in ops))


def _slices(result: Result, ops: Sequence[WindowOp], *, clocked: bool) -> Iterator[Event]:
    suspects, lanes = suspects_by_op(result), _lanes(ops)
    start = min((one.launch_ns or 0 for one in ops), default=0)
    for order, one in enumerate(ops):
        at, length = _span(one, start) if clocked else (float(order), 1.0)
        args: dict[str, object] = {"line": one.op.line, "id": one.op.id, "step": one.op.step}
        args |= {"process": plain(one.op.process), "order": order}
        suspect = suspects.get(key_of(one.op))
        if suspect is not None:
            args |= {"suspect_rank": suspect.rank, "suspect_share": suspect.share}
            args["reasons"] = [plain(clip(reason.text, NAME_CHARS)) for reason in suspect.reasons]
            args["made_at"] = [plain(f"{frame.file}:{frame.line}") for frame in suspect.source]
        yield {
            "ph": "X",
            "name": plain(clip(one.op.name, NAME_CHARS)),
            "cat": "suspect" if suspect else "op",
            "ts": at,
            "dur": length,
            "pid": PID,
            "tid": lanes.index(plain(lane_of(one))) + 1,
            "args": args,
        }
    yield from _report(result, ops, clocked=clocked)


def _span(one: WindowOp, start: int) -> tuple[float, float]:
    begin = one.launch_ns or 0
    end = one.completion_ns if one.completion_ns is not None else begin
    return (begin - start) / NS_PER_US, max(end - begin, 0) / NS_PER_US


def _report(result: Result, ops: Sequence[WindowOp], *, clocked: bool) -> Iterator[Event]:
    """The report as an instant, only where order gives it a place: after the last launch."""
    root = root_of(result)
    if root is None or clocked or not ops:
        return
    name = f"reported: {root.kind}"
    yield {
        "ph": "i",
        "s": "g",
        "name": name,
        "ts": float(len(ops)),
        "pid": PID,
        "tid": 0,
        "args": {"line": root.line},
    }

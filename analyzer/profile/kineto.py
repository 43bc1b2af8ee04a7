"""Chrome traces of the PyTorch profiler (Kineto): kernels joined to the ops that launched them.

A kernel carries the correlation id of the runtime call that launched it, and that call stands inside an op on
the same thread. The ``External id`` of the kernel says the same where the profiler knew it; a raw launch
(Triton, a custom extension) outside of every op stays unassigned and is counted.
"""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_right
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from analyzer.errors import InputError
from analyzer.profile.model import KERNELS_SCHEMA, OPS_SCHEMA, Profile

_KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
_LAUNCHES = frozenset({"cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver"})
_GZIP = b"\x1f\x8b"  # the profiler writes .json.gz where it is asked to
_NS_PER_US = 1000  # Chrome traces count microseconds, with a fraction


class _Event(msgspec.Struct):
    """The fields of a complete event that are used. Other events have no duration."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    ts: float = 0.0
    dur: float | None = None
    tid: Any = None
    args: dict[str, Any] = {}


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]  # noqa: N815 (the name in the file)
    baseTimeNanoseconds: int = 0  # noqa: N815


def read_kineto(path: Path) -> Profile:
    """Read a Kineto or Chrome trace.

    Raises:
        InputError: The file is no trace, or holds no device work.
    """
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        trace = msgspec.json.decode(data, type=_Trace)
    except (msgspec.MsgspecError, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise InputError(f"--profile {path}: not a Chrome trace: {error}") from error
    except OSError as error:
        raise InputError(f"--profile {path}: cannot be read: {error.strerror}") from error
    events = [event for event in trace.traceEvents if event.ph == "X" and event.dur is not None]
    ops = _Ops([event for event in events if event.cat in {"cpu_op", "user_annotation"}])
    calls = {
        event.args["correlation"]: event
        for event in events
        if event.cat in _LAUNCHES and "correlation" in event.args
    }
    work = [event for event in events if event.cat in _KINDS]
    if not work:
        raise InputError(
            f"--profile {path}: holds no device work; profile with ProfilerActivity.CUDA switched on"
        )
    base = trace.baseTimeNanoseconds
    rows = [_row(event, ops, calls, base) for event in work]
    kernels = pl.DataFrame(rows, schema=KERNELS_SCHEMA, orient="row").sort("start_ns")
    return Profile(source="kineto", kernels=kernels, ops=ops.frame(base))


class _Ops:
    """Ops of all threads; finds the innermost one around a moment."""

    def __init__(self, events: list[_Event]) -> None:
        self._events = sorted((event for event in events if event.cat == "cpu_op"), key=lambda e: e.ts)
        self._by_id = {
            event.args["External id"]: index
            for index, event in enumerate(self._events)
            if "External id" in event.args
        }
        self._threads: dict[Any, list[int]] = {}
        for index, event in enumerate(self._events):
            self._threads.setdefault(event.tid, []).append(index)
        self._starts = {
            thread: [self._events[i].ts for i in order] for thread, order in self._threads.items()
        }

    def around(self, call: _Event) -> int | None:
        """The op with the latest start that holds the whole call, on the thread of the call."""
        order = self._threads.get(call.tid, [])
        at = bisect_right(self._starts.get(call.tid, []), call.ts)
        for index in reversed(order[:at]):
            event = self._events[index]
            if event.ts + (event.dur or 0.0) >= call.ts + (call.dur or 0.0):
                return index
        return None

    def by_external_id(self, number: object) -> int | None:
        return self._by_id.get(number)

    def name(self, index: int) -> str:
        return self._events[index].name

    def frame(self, base_ns: int) -> pl.DataFrame:
        """``OPS_SEEN``."""
        rows = [
            (index, event.name, _number(event.tid), base_ns + _ns(event.ts), _ns(event.dur or 0.0))
            for index, event in enumerate(self._events)
        ]
        return pl.DataFrame(rows, schema=OPS_SCHEMA, orient="row")


def _row(event: _Event, ops: _Ops, calls: dict[Any, _Event], base_ns: int) -> tuple[object, ...]:
    correlation = event.args.get("correlation")
    call = calls.get(correlation)
    index = ops.around(call) if call is not None else None
    if index is None:
        index = ops.by_external_id(event.args.get("External id"))
    return (
        _KINDS[event.cat or ""],
        event.name,
        event.args.get("device"),
        event.args.get("stream"),
        base_ns + _ns(event.ts),
        _ns(event.dur or 0.0),
        correlation,
        ops.name(index) if index is not None else None,
        index,
    )


def _ns(microseconds: float) -> int:
    return round(microseconds * _NS_PER_US)


def _number(thread: object) -> int | None:
    return thread if isinstance(thread, int) else None

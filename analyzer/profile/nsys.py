"""Nsight Systems exports (``nsys export --type sqlite``): kernels with device times.

The export has no framework ops; NVTX ranges around the launching call take their place where the program
pushed some (PyTorch with ``emit_nvtx``, MAX with its NVTX profiling).
"""

from __future__ import annotations

import contextlib
import sqlite3
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from analyzer.errors import InputError
from analyzer.profile.model import KERNELS_SCHEMA, OPS_SCHEMA, Profile

_KERNEL_TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPY_TABLES = {"CUPTI_ACTIVITY_KIND_MEMCPY": "memcpy", "CUPTI_ACTIVITY_KIND_MEMSET": "memset"}
_TO_HOST = 2  # copyKind of CUPTI and of nsys (ENUM_CUDA_MEMCPY_OPER): device to host
_RUNTIME_TABLE = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES = "SELECT start, end, globalTid, text, textId FROM NVTX_EVENTS WHERE end IS NOT NULL ORDER BY start"
MAGIC = b"SQLite format 3\x00"

_Range = tuple[int, int, str, int]


def read_nsys(path: Path) -> Profile:
    """Read an SQLite export.

    Raises:
        InputError: The file is no such export, or holds no kernels.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            return _read(path, base)
    except sqlite3.Error as error:
        raise InputError(f"--profile {path}: cannot be read as an nsys SQLite export: {error}") from error


def _read(path: Path, base: sqlite3.Connection) -> Profile:
    tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if _KERNEL_TABLE not in tables:
        raise InputError(f"--profile {path}: has no table {_KERNEL_TABLE}; was CUDA traced (nsys -t cuda)?")
    strings = dict(base.execute("SELECT id, value FROM StringIds")) if "StringIds" in tables else {}
    ranges = _ranges(base, strings) if "NVTX_EVENTS" in tables else {}
    calls = _calls(base) if _RUNTIME_TABLE in tables else {}
    order = {one: index for index, one in enumerate(sorted({r for own in ranges.values() for r in own}))}
    rows = []
    for kind, name, device, stream, start, end, correlation in _work(base, tables, strings):
        found = _around(ranges, calls.get(correlation))
        place = (found[2], order[found]) if found else (None, None)
        rows.append((kind, name, device, stream, start, end - start, correlation, *place))
    kernels = pl.DataFrame(rows, schema=KERNELS_SCHEMA, orient="row").sort("start_ns")
    seen = [(index, one[2], one[3], one[0], one[1] - one[0]) for one, index in order.items()]
    return Profile(source="nsys", kernels=kernels, ops=pl.DataFrame(seen, schema=OPS_SCHEMA, orient="row"))


def _work(
    base: sqlite3.Connection, tables: set[str], strings: Mapping[int, str]
) -> list[tuple[str, str, int, int, int, int, int]]:
    """Kernels, copies and fills: kind, name, device, stream, start, end, correlation."""
    found = []
    query = f"SELECT demangledName, deviceId, streamId, start, end, correlationId FROM {_KERNEL_TABLE}"  # noqa: S608 (our own constant)
    for name, *rest in base.execute(query):
        found.append(("kernel", strings.get(name, str(name)), *rest))
    for table, kind in _COPY_TABLES.items():
        if table in tables:
            columns = {name for _, name, *_ in base.execute(f"PRAGMA table_info({table})")}
            way = "copyKind" if "copyKind" in columns else "NULL"
            query = f"SELECT {way}, deviceId, streamId, start, end, correlationId FROM {table}"  # noqa: S608 (our own constants)
            for copied, *rest in base.execute(query):
                found.append((kind, f"{kind} DtoH" if copied == _TO_HOST else kind, *rest))
    return found


def _calls(base: sqlite3.Connection) -> dict[int, tuple[int, int, int]]:
    """Runtime calls by correlation: thread, start, end."""
    query = f"SELECT correlationId, globalTid, start, end FROM {_RUNTIME_TABLE}"  # noqa: S608 (our own constant)
    return {correlation: (thread, start, end) for correlation, thread, start, end in base.execute(query)}


def _ranges(base: sqlite3.Connection, strings: Mapping[int, str]) -> dict[int, list[_Range]]:
    """NVTX ranges of each thread by start."""
    found: dict[int, list[_Range]] = {}
    for start, end, thread, text, text_id in base.execute(_RANGES):
        label = text if text is not None else strings.get(text_id, "")
        found.setdefault(thread, []).append((start, end, label, thread))
    return found


def _around(ranges: Mapping[int, list[_Range]], call: tuple[int, int, int] | None) -> _Range | None:
    """The innermost range that holds a call, on its thread."""
    if call is None:
        return None
    thread, start, end = call
    own = ranges.get(thread, [])
    at = bisect_right(own, (start, float("inf"), "", 0))
    return next((one for one in reversed(own[:at]) if one[1] >= end), None)

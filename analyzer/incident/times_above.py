"""When an error happened whose own line has no time: the nearest line above it that has one tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import polars as pl

from analyzer.incident.driver_messages import is_of_driver_log
from analyzer.incident.incident import Change, Incident, SetRecord
from analyzer.ingest.envelope import strip
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord
from analyzer.traits import is_sticky

_ABOVE_LINES = 200  # the frames of a long traceback
_FOUND = 16  # the first errors are the ones that count
_KERNEL = "dmesg"  # the kernel's own stamps say nothing about lines of a program below them


def times_above(incident: Incident) -> Iterator[Change]:
    """Faults that a driver log has to be compared with have the time of the line above, in need."""
    records = incident.records
    if not any(is_of_driver_log(record) for record in records):
        return
    wanted = [index for index, record in enumerate(records) if _is_wanted(record)]
    for index in wanted[:_FOUND]:
        timed = _timed(incident.known, records[index])
        if timed is not records[index]:
            yield SetRecord(index=index, record=timed, why="the time of the nearest line above that has one")


def _is_wanted(record: FaultRecord) -> bool:
    return record.time_ns is None and not is_of_driver_log(record) and is_sticky(record)


def _timed(known: Knowledge, record: FaultRecord) -> FaultRecord:
    first = max(1, record.line - _ABOVE_LINES)
    raw: Sequence[str] = known.readers[record.source].raw(first, record.line)
    lines = pl.DataFrame({"raw": raw}).with_row_index("line", offset=first)
    rows = strip(lines.with_columns(pl.lit(record.source).alias("source")))
    told = rows.filter(
        pl.col("time_ns").is_not_null()
        & (pl.col("process") == record.process)
        & ~pl.col("envelope").str.contains(_KERNEL, literal=True)
    ).tail(1)
    for time_ns, clock in told.select("time_ns", "clock").iter_rows():
        return msgspec.structs.replace(record, above_ns=time_ns, above_clock=clock)
    return record

"""The prefixes under which other programs hand a log on, as they really write them: one row each."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import polars as pl

from analyzer.ingest.envelope import strip

Lines = Sequence[str]
Wrapper = Callable[[Lines], list[str]]

POD = "serve-7f9c4d8b5-x2x4z"
_BEGIN = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
_STEP = timedelta(milliseconds=1)
_PID = re.compile(r"\bpid[=: ]([0-9]+)")


class Stamped(NamedTuple):
    """A line, when it was written, and the process that a carrier knows to have written it."""

    line: str
    time: datetime
    pid: str

    @property
    def iso(self) -> str:
        """With microseconds, in UTC."""
        return f"{self.time:%Y-%m-%dT%H:%M:%S.%f}Z"

    @property
    def ms(self) -> int:
        """Milliseconds since 1970."""
        return round(self.time.timestamp() * 1000)


def stamped(lines: Lines) -> list[Stamped]:
    """The lines with times that do not contradict those that they tell themselves.

    A line without time is of the time of the line above it; a log without any time is written at once, a
    line a millisecond. The process is the one that the log names, if it names one.
    """
    pid = next((found.group(1) for line in lines if (found := _PID.search(line))), "4711")
    own = _own_times(lines)
    now = next((own[number] for number in range(len(lines)) if number in own), None)
    rows: list[Stamped] = []
    for number, line in enumerate(lines):
        now = own.get(number, now)
        rows.append(Stamped(line, _BEGIN + number * _STEP if now is None else now, pid))
    return rows


def _own_times(lines: Lines) -> dict[int, datetime]:
    """What the lines tell: a clock without a year is of 2026, one without a date of the last date told."""
    texts = [line.encode("utf-8", "replace").decode() for line in lines]
    frame = pl.DataFrame({"source": 0, "line": range(len(texts)), "raw": texts}, schema_overrides=_SCHEMA)
    told = strip(frame).filter(pl.col("clock") != "boot").unique("line", keep="first", maintain_order=True)
    dated = told.filter(pl.col("clock") != "no_date").select("time_ns", "clock").head(1).rows()
    day = _midnight(_START[dated[0][1]] + timedelta(microseconds=dated[0][0] // 1000) if dated else _BEGIN)
    found = {}
    for line, time_ns, clock in told.select("line", "time_ns", "clock").iter_rows():
        passed = timedelta(microseconds=time_ns // 1000)
        found[line] = _START.get(clock, day) + passed
        day = _midnight(found[line])
    return found


def _midnight(time: datetime) -> datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


_START = {"epoch": datetime(1970, 1, 1, tzinfo=UTC), "no_year": datetime(_BEGIN.year, 1, 1, tzinfo=UTC)}
_SCHEMA = {"source": pl.UInt16, "line": pl.UInt32, "raw": pl.String}


def _plain(form: str) -> Wrapper:
    """Each line in a form that names the fields of ``Stamped``."""

    def wrap(lines: Lines) -> list[str]:
        return [
            form.format(line=one.line, time=one.time, ms=one.ms, pid=one.pid, iso=one.iso)
            for one in stamped(lines)
        ]

    return wrap


def _records(fields: Callable[[Stamped], Mapping[str, object]]) -> Wrapper:
    """Each line as a string in a JSON object."""

    def wrap(lines: Lines) -> list[str]:
        return [json.dumps(fields(one), ensure_ascii=False) for one in stamped(lines)]

    return wrap


def _journal(one: Stamped) -> dict[str, object]:
    """Journald writes what is not printable as a list of bytes."""
    odd = any(ord(character) < 32 and character not in "\n\t" for character in one.line)
    return {
        "_HOSTNAME": "node7",
        "PRIORITY": "6",
        "__REALTIME_TIMESTAMP": str(one.ms * 1000),
        "SYSLOG_IDENTIFIER": "python3",
        "MESSAGE": list(one.line.encode("utf-8", "surrogateescape")) if odd else one.line,
        "_PID": one.pid,
        "_SYSTEMD_UNIT": "serve.service",
    }


def journal_export(lines: Lines) -> list[str]:
    """An entry with its fields for each line, as one text; what is not printable is binary."""
    shown: list[str] = []
    for one in stamped(lines):
        fields = {key: str(value) for key, value in _journal(one).items() if key != "MESSAGE"}
        clock = "__REALTIME_TIMESTAMP"
        shown += [f"__CURSOR=s=1;i={len(shown)}", f"{clock}={fields.pop(clock)}"]
        shown += [f"{key}={value}" for key, value in fields.items()]
        if isinstance(_journal(one)["MESSAGE"], list):
            data = one.line.encode("utf-8", "surrogateescape")
            size = struct.pack("<Q", len(data)).decode("utf-8", "surrogateescape")
            shown += ["MESSAGE", f"{size}{one.line}", ""]
        else:
            shown += [f"MESSAGE={one.line}", ""]
    return shown


def gitlab(lines: Lines) -> list[str]:
    """The job's log as the runner stamps it, by turns from both streams."""
    return [f"{one.iso} 00{'OE'[number % 2]} {one.line}" for number, one in enumerate(stamped(lines))]


PREFIXES: dict[str, Wrapper] = {
    "cri": _plain("{time:%Y-%m-%dT%H:%M:%S.%f}000Z stdout F {line}"),
    "kubectl": _plain(f"[pod/{POD}/main] {{line}}"),
    "kubectl with stamps": _plain("[pod/serve-0/main] {time:%Y-%m-%dT%H:%M:%S.%f}000Z {line}"),
    "stern": _plain(f"{POD} main {{line}}"),
    "stern in colour": _plain("\x1b[96mserve-0\x1b[0m \x1b[36mmain\x1b[0m {line}"),
    "compose": _plain("serve-1    | {line}"),
    "compose in colour": _plain("\x1b[36mserve    | \x1b[0m{line}"),
    "swarm": _plain("max_serve.1.x5h3k2j9d0q1w8e7r6t5y4u3i@node7    | {line}"),
    "journal short-precise": _plain("{time:%b %d %H:%M:%S.%f} node7 python3[{pid}]: {line}"),
    "journal short-iso": _plain("{time:%Y-%m-%dT%H:%M:%S}+0000 node7 python3[{pid}]: {line}"),
    "journal json": _records(_journal),
    "journal export": journal_export,
    "gitlab": gitlab,
    "jenkins": _plain("[{time:%Y-%m-%dT%H:%M:%S}.123Z] {line}"),
    "airflow": _plain("[{time:%Y-%m-%d, %H:%M:%S} UTC] {{subprocess.py:93}} INFO - {line}"),
    "airflow 3": _plain("[{time:%Y-%m-%dT%H:%M:%S}.123+0000] {{pod_manager.py:468}} INFO - [base] {line}"),
    "cloudwatch": _plain(
        "{time:%Y-%m-%dT%H:%M:%S.%f}+00:00 serve/main/0123456789abcdef0123456789abcdef {line}"
    ),
    "cloudwatch export": _plain("{ms} {line}"),
    "loki": _plain('{time:%Y-%m-%dT%H:%M:%S}Z {{container="main", pod="serve-0"}} {line}'),
    "loki jsonl": _records(
        lambda one: {
            "labels": {"container": "main", "pod": "serve-0"},
            "line": one.line,
            "timestamp": one.iso,
        }
    ),
    "github": _plain("{time:%Y-%m-%dT%H:%M:%S.%f}0Z {line}"),
    "gh run view": _plain("serve (gpu, 1)\tRun tests\t{time:%Y-%m-%dT%H:%M:%S.%f}0Z {line}"),
    "fluentd": _records(
        lambda one: {
            "time": one.iso,
            "stream": "stderr",
            "log": f"{one.line}\n",
            "kubernetes": {"pod_name": POD, "container_name": "main"},
        }
    ),
    "datadog": _records(
        lambda one: {
            "ddsource": "python",
            "service": "serve",
            "hostname": "node7",
            "status": "info",
            "message": one.line,
            "timestamp": one.ms,
        }
    ),
    "google cloud": _records(
        lambda one: {
            "textPayload": one.line,
            "timestamp": one.iso,
            "resource": {"labels": {"pod_name": POD, "container_name": "main"}},
        }
    ),
}


def layers_shown() -> set[str]:
    """The layers that the prefixes are made of."""
    texts = [line for wrap in PREFIXES.values() for line in wrap(["x"])]
    frame = pl.DataFrame({"source": 0, "line": range(len(texts)), "raw": texts}, schema_overrides=_SCHEMA)
    return {layer for name in strip(frame)["envelope"] for layer in name.split("+")}

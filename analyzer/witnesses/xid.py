"""GPU faults in the kernel's log: NVIDIA's Xid and SXid, what amdgpu tells (formats.md 3.17, 3.20).

They name GPU and process, never a kernel. Messages of one GPU, process and number within a second are one
event; an Xid 13 has no pid and belongs to the process that the next Xid of its GPU names (observed.md 27).
A message of hardware without a pid is about the whole GPU and stays so: several processes can use it.
``nvidia-smi`` says of a GPU that the driver lost what the kernel's log says of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import Advice, FaultRecord, Reading, XidEvent
from analyzer.numbers import integer
from analyzer.schema import FaultKind
from analyzer.tables.xids import GPU_LOST, Xid, bus_of, by_name, by_number, kind_of, previous_xid
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.amdgpu import AMD_FORMS, AMD_GATES, read_amd
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import Form, Seen, build_fault, read_forms

NAME = "xid"
_EVENT_NS = 10**9  # the lines of one fault are 0.5 s apart at most (observed.md 27)
_EVENT_LINES = 50  # where there is no clock
_MAX_EVENTS = 500  # of a GPU, process and number; later ones are counted in the last
_OF_CHANNELS = frozenset({32, 43, 45, 69})  # a channel belongs to one process
_NO_ACTION = "to 0x0 (None)"  # Xid 154: the GPU has recovered
_LOST = "off the bus"
_BDF = re.compile(r"(?<![0-9a-f:])[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\b", re.IGNORECASE)
_SMI = "Unable to determine the device handle for"
_NVIDIA_GATES = ("NVRM: Xid (", ": SXid (", "NVRM: GPU at PCI:", _LOST)
_LOST_NUMBER = 79
_FORMS = (
    Form(rule="xid", begins=r"NVRM: Xid \("),
    Form(rule="sxid", begins=r"nvidia-nvswitch[0-9]+: SXid \("),
    Form(rule="gpu_at", begins="NVRM: GPU at PCI:"),
    Form(rule="lost", begins="NVRM: .*fallen off the bus"),
    Form(rule="smi_lost", begins=_SMI + r" [^\n]*: *GPU is lost"),
    *AMD_FORMS,
)
# Who and where: two lines that differ in it are two events, and one text for the grammar.
_GPU = r"\((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?)"
_PROCESS = r"\bpid='?([0-9]+)'?(?:, *name=([^,\n]+))?"
_BLANK = (
    r"(\((?:PCI:)?)[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}",
    r"(pid='?)[0-9]+",
    r"(name=)[^,\n]+",
    r"([Cc]h(?:annel)? )[0-9a-f]{4,}",  # hexadecimal without a mark, as are register words
)


class _Event(msgspec.Struct):
    """Messages of one GPU, process and number that belong together."""

    first: Seen
    gpu: str
    number: int
    pid: int | None
    name: str | None
    text: str
    lines: list[int]
    last_ns: int | None


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source: one record an event."""
    losses = Losses(NAME)
    text = pl.col("text")
    rows = frame.with_columns(text.str.split("\n")).explode("text")  # a JSON record can hold a whole log
    gap = pl.col("time_ns").diff() > _EVENT_NS
    far = pl.col("line").cast(pl.Int64).diff() > _EVENT_LINES
    burst = pl.when(pl.col("time_ns").is_null()).then(far).otherwise(gap).fill_null(False).cum_sum()
    where = [text.str.extract(f"({pattern})").fill_null("") for pattern in (_GPU, _PROCESS)]
    apart = pl.concat_str(burst.cast(pl.String), *where, separator="|")
    seen = read_forms(rows, NAME, _FORMS, losses, blank=_BLANK, apart=apart)
    events = _events([one for one in seen if one.rule in {"xid", "sxid"}])
    reading = Reading(losses=losses.all(), parsed=sorted({line for one in seen for line in one.lines}))
    of_amd, used = read_amd(seen, fetch)
    reading.records = [*(_record(event) for event in events), *of_amd, *_lost(seen, events)]
    reading.records.sort(key=lambda record: record.line)
    reading.continuation = sorted(set(used) - set(reading.parsed))
    known = {*reading.parsed, *reading.continuation}
    others = rows.filter(~text.str.contains_any(_NVIDIA_GATES))["line"].unique().to_list()
    reading.not_mine = sorted(set(others) - known)
    return reading


def _events(seen: Sequence[Seen]) -> list[_Event]:
    """Messages that belong together, by first line; a pid that some do not have comes from the next one."""
    open_events: dict[tuple[str, int, int, str, int | None], _Event] = {}
    counts: dict[tuple[str, int, int, str, int | None], int] = {}
    events: list[_Event] = []
    for one in seen:
        event = _event(one)
        cause = previous_xid(event.text)
        key = (one.rule, event.number, cause.number if cause else 0, event.gpu, event.pid)
        known = open_events.get(key)
        if known is not None and (_near(known, one) or counts[key] >= _MAX_EVENTS):
            known.lines.extend(one.lines)
            known.last_ns = one.time_ns if one.time_ns is not None else known.last_ns
            continue
        open_events[key] = event
        counts[key] = counts.get(key, 0) + 1
        events.append(event)
    for at, event in enumerate(events):
        if event.pid is None and _is_of_a_process(event):
            _take_pid(event, events[at + 1 : at + 8])
    return events


def _event(one: Seen) -> _Event:
    """GPU and process are those of its own text: the grammar reads one for all that differ in them."""
    number = one.number("INT")
    gpu, process = re.search(_GPU, one.text), re.search(_PROCESS, one.text)
    pid, name = process.groups() if process else (None, None)
    name = (name or "").strip()
    return _Event(
        first=one,
        gpu=gpu.group(1).lower() if gpu else "",
        number=number if number is not None else 0,
        pid=integer(pid),
        name=None if name in {"", "<unknown>"} else name,
        text=one.get("TEXT") or "",
        lines=list(one.lines),
        last_ns=one.time_ns,
    )


def _near(event: _Event, one: Seen) -> bool:
    if event.last_ns is None or one.time_ns is None:
        return one.line - event.lines[-1] <= _EVENT_LINES
    return one.time_ns - event.last_ns <= _EVENT_NS


def _is_of_a_process(event: _Event) -> bool:
    """Software faults and the clean-up after them; Xid 154 is about the GPU."""
    row = by_number(event.number)
    return event.first.rule == "xid" and (
        row is None or row.reading == "software" or row.number in _OF_CHANNELS
    )


def _take_pid(event: _Event, following: Sequence[_Event]) -> None:
    """The process that the next message of the same GPU names, if it comes at once."""
    for other in following:
        if other.gpu == event.gpu and other.pid is not None and _near(event, other.first):
            event.pid, event.name = other.pid, other.name
            return


def _record(event: _Event) -> FaultRecord | Advice:
    """The fault; a message that the GPU has recovered is none."""
    one = event.first
    if _NO_ACTION in event.text:
        return Advice(source=one.source, line=one.line, text=one.text.strip())
    switch = one.rule == "sxid"
    name = f"{'SXid' if switch else 'Xid'} {event.number}"
    row = by_name(name)
    kind = _kind(event, row)
    cause = previous_xid(one.text)
    fault = build_fault(one, NAME, kind, "driver_log", vendor="nvidia")
    return msgspec.structs.replace(
        fault,
        name=name,
        process=_process(event.pid, event.name, event.gpu),
        device=event.gpu,
        last_line=max(event.lines),
        count=len(event.lines),
        detail=XidEvent(caused_by=cause.number if cause else None),
        label=f"{row.meaning}; {row.action}" if row and not (switch and kind == "unknown") else None,
    )


def _kind(event: _Event, row: Xid | None) -> FaultKind:
    if event.first.rule == "sxid":
        return "device_lost" if "Fatal" in event.text and "Non-fatal" not in event.text else "unknown"
    return kind_of(row, event.text)


def _process(pid: int | None, name: str | None, gpu: str) -> str:
    """A key in the form of other tags; a message without a pid is about the whole GPU."""
    if pid is None:
        return f"GPU {gpu}"
    return f"{(name or 'process').strip()} pid={pid}"


def _lost(seen: Sequence[Seen], events: Sequence[_Event]) -> list[FaultRecord]:
    """A lost GPU without an Xid 79: some drivers print it over three lines, ``nvidia-smi`` finds it later."""
    told = [event.gpu for event in events if event.number == _LOST_NUMBER]
    lost = [one for one in seen if one.rule == "lost"]
    records = [_gone(lost[0], "Xid 79", sum(len(one.lines) for one in lost))] if lost and not told else []
    buses = {bus_of(gpu) for gpu in (*told, *(one.device or "" for one in records))}
    found = [one for one in seen if one.rule == "smi_lost" and bus_of(one.get("BDF") or "") not in buses]
    return records + [_gone(one, GPU_LOST, len(one.lines)) for one in found]


def _gone(one: Seen, name: str, count: int) -> FaultRecord:
    fault = build_fault(one, NAME, "device_lost", "driver_log", vendor="nvidia")
    named = _BDF.search(one.text)
    gpu = named.group().lower() if named else None
    process = f"GPU {gpu}" if gpu else "GPU"
    row = by_name(name) if name == GPU_LOST else None
    label = f"{row.meaning}; {row.action}" if row else None
    return msgspec.structs.replace(fault, name=name, process=process, device=gpu, count=count, label=label)


WITNESS = Witness(name=NAME, gates=(*_NVIDIA_GATES, _SMI, *AMD_GATES), read=read, grammar="xid.lark")

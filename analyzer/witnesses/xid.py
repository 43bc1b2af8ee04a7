"""GPU faults in the kernel's log: NVIDIA's Xid and SXid, amdgpu's page faults (formats.md 3.17, 3.20).

They name GPU and process, never a kernel. Messages of one GPU, process and number within a second are one
event; an Xid 13 has no pid and belongs to the process that the next Xid of its GPU names (observed.md 27).
A message of hardware without a pid is about the whole GPU and stays so: several processes can use it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.faults.xids import Xid, by_name, by_number, kind_of, previous_xid
from analyzer.model import Advice, FaultRecord, Reading
from analyzer.schema import FaultKind
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault, read_forms, read_line

NAME = "xid"
_EVENT_NS = 10**9  # the lines of one fault are 0.5 s apart at most (observed.md 27)
_EVENT_LINES = 50  # where there is no clock
_MAX_EVENTS = 500  # of a GPU, process and number; later ones are counted in the last
_AMD_LINES = 4
_OF_CHANNELS = frozenset({32, 43, 45, 69})  # a channel belongs to one process
_NO_ACTION = "to 0x0 (None)"  # Xid 154: the GPU has recovered
_LOST = "off the bus"
_AMD_HEAD = re.compile(r"^amdgpu [0-9a-f:.]+: *(?:amdgpu: *)?")
_BDF = re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\b", re.IGNORECASE)
_GATES = ("NVRM: Xid (", ": SXid (", "NVRM: GPU at PCI:", _LOST, " page fault (src_id:")
_FORMS = (
    Form(rule="xid", begins=r"NVRM: Xid \("),
    Form(rule="sxid", begins=r"nvidia-nvswitch[0-9]+: SXid \("),
    Form(rule="gpu_at", begins="NVRM: GPU at PCI:"),
    Form(rule="lost", begins="NVRM: .*fallen off the bus"),
    Form(
        rule="amd_fault",
        begins=r"amdgpu [0-9a-f:.]+: (?:amdgpu: )?\[[a-z]+hub[^]]*\] (?:no-retry )?page fault \(",
    ),
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
    gap = pl.col("time_ns").diff() > _EVENT_NS
    far = pl.col("line").cast(pl.Int64).diff() > _EVENT_LINES
    burst = pl.when(pl.col("time_ns").is_null()).then(far).otherwise(gap).fill_null(False).cum_sum()
    # A pid is told by its exact digits; channel and register words are hexadecimal without a mark.
    seen = read_forms(frame, NAME, _FORMS, losses, blank=("([Cc]h(?:annel)? )[0-9a-f]{4,}",), apart=burst)
    events = _events([one for one in seen if one.rule in {"xid", "sxid"}])
    reading = Reading(losses=losses.all(), parsed=sorted({line for one in seen for line in one.lines}))
    reading.records = [_record(event) for event in events]
    for at, one in enumerate(one for one in seen if one.rule == "amd_fault"):
        record, used = _amd(one, fetch if at < FETCHED else None)
        reading.records.append(record)
        reading.continuation.extend(used)
    reading.records.extend(_lost(seen, events))
    reading.records.sort(key=lambda record: record.line)
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
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
    number = one.number("INT")
    pid = one.get("PID")
    name = (one.get("NAME") or "").strip()
    return _Event(
        first=one,
        gpu=(one.get("BDF") or "").lower(),
        number=number if number is not None else 0,
        pid=int(pid) if pid else None,
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
    fault = build_fault(one, NAME, kind, "kernel_log", vendor="nvidia")
    return msgspec.structs.replace(
        fault,
        name=name,
        process=_process(event.pid, event.name, event.gpu),
        device=event.gpu,
        last_line=max(event.lines),
        count=len(event.lines),
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
    """``fallen off the bus`` without an Xid 79 is one (some drivers print it over three lines)."""
    lost = [one for one in seen if one.rule == "lost"]
    if not lost or any(event.number == 79 for event in events):
        return []
    fault = build_fault(lost[0], NAME, "device_lost", "kernel_log", vendor="nvidia")
    named = _BDF.search(lost[0].text)
    gpu = named.group().lower() if named else None
    return [
        msgspec.structs.replace(
            fault,
            name="Xid 79",
            process=f"GPU {gpu}" if gpu else "GPU",
            device=gpu,
            count=sum(len(o.lines) for o in lost),
        )
    ]


def _amd(one: Seen, fetch: Fetch | None) -> tuple[FaultRecord, list[int]]:
    """A page fault; the process can stand on the line itself or on the next ones."""
    pid, name, used = one.get("PID"), one.get("PROCESS"), list[int]()
    for line in fetch.after(one.line, one.process, _AMD_LINES) if fetch else ():
        text = _AMD_HEAD.sub("", line.text.strip())
        rule = "amd_page" if text.startswith("in page") else "amd_process"
        fields = read_line(NAME, rule, text)
        if fields is None:
            continue
        used.append(line.number)
        if rule == "amd_process" and pid is None:
            pid, name = fields["PID"][0], fields["PROCESS"][0]
    fault = build_fault(one, NAME, "illegal_address", "kernel_log", vendor="amd")
    gpu = one.get("BDF") or ""
    known = int(pid) if pid and int(pid) else None  # 0 = the driver does not know it
    last = max([*one.lines, *used])
    process = _process(known, name, gpu)
    return msgspec.structs.replace(
        fault, process=process, device=gpu, name="page fault", last_line=last
    ), used


WITNESS = Witness(name=NAME, gates=_GATES, read=read, grammar="xid.lark")

"""What the amdgpu driver tells the kernel's log: page faults, hangs, resets, RAS errors. No witness.

Three generations of the driver write a hang in three ways (``ring gfx timeout`` behind ``*ERROR*``, with the
PCI address, without the second ``amdgpu:``), and the process on the line below. A reset follows what it was
made for, so it is told by itself only where nothing else is. Corrected errors, and queries that found no
uncorrectable one, are no fault; ``in total`` is a count since the start of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from analyzer.model import FaultRecord
from analyzer.numbers import integer
from analyzer.schema import FaultKind
from analyzer.tables.xids import GPU_RESET, RING_TIMEOUT
from analyzer.witness import Fetch
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault, read_line

_GRAMMAR = "xid"
_PROCESS_LINES = 4
_RESET_LINES = 200  # a reset takes seconds, and a kernel log of that time is full of it
_DEVICE = r"amdgpu [0-9a-f:.]+: +(?:amdgpu: +)?"
_DRM = r"\[drm:[a-z0-9_]+ \[amdgpu\]\] \*ERROR\* "
_HEAD = re.compile(rf"^(?:{_DEVICE}|{_DRM})")
_RAS_NAME = "RAS uncorrectable error"
_RESETS = (
    r"(?:GPU reset(?: begin|\([0-9]+\)| succeeded| end)|MODE[0-9] reset|BACO reset|Starting \S+ ring reset"
    r"|Ring \S+ reset |VRAM is lost|\[drm\] device wedged)"
)
AMD_GATES = (
    " page fault (src_id:",
    " timeout, signaled seq=",
    " timeout, but soft recovered",
    "GPU reset",
    " ring reset",
    " reset succeeded",
    "MODE1 reset",
    "MODE2 reset",
    "BACO reset",
    "VRAM is lost",
    "device wedged",
    "uncorrectable hardware error",
    "RAS event of type ",
)
AMD_FORMS = (
    Form(
        rule="amd_fault",
        begins=r"amdgpu [0-9a-f:.]+: (?:amdgpu: )?\[[a-z]+hub[^]]*\] (?:no-retry )?page fault \(",
    ),
    Form(rule="amd_ring", begins=rf"(?:{_DEVICE}|{_DRM})ring \S+ timeout, "),
    Form(
        rule="amd_ras",
        begins=_DEVICE + r"(?:socket: [0-9]+[^0-9\n][^\n]*?)?[0-9]* ?(?:new )?uncorrectable hardware error",
    ),
    Form(rule="amd_ras", begins=_DEVICE + "RAS event of type ERREVENT"),
    Form(rule="amd_reset", begins=_DEVICE + _RESETS),
)


def read_amd(seen: Sequence[Seen], fetch: Fetch) -> tuple[list[FaultRecord], list[int]]:
    """The faults among the texts of a source, and the lines around them that belong to them."""
    told = [one for one in seen if one.rule in {"amd_fault", "amd_ring"}]
    resets = [one for one in seen if one.rule == "amd_reset"]
    records = []
    used: list[int] = []
    for at, one in enumerate(told):
        kind: FaultKind = "illegal_address" if one.rule == "amd_fault" else "hang_timeout"
        name = "page fault" if one.rule == "amd_fault" else RING_TIMEOUT
        record, lines = _of_a_process(one, kind, name, fetch if at < FETCHED else None)
        records.append(_with_device(record, resets))
        used.extend(lines)
    records.extend(_of_the_gpu(one, "ecc_error", _RAS_NAME) for one in seen if _is_uncorrectable(one))
    if resets and not any(_is_followed(record, resets[0]) for record in records):
        reset = _of_the_gpu(resets[0], "unknown", GPU_RESET)
        last = max(line for one in resets for line in one.lines)
        records.append(msgspec.structs.replace(reset, last_line=last))
    return records, used


def _of_a_process(
    one: Seen, kind: FaultKind, name: str, fetch: Fetch | None
) -> tuple[FaultRecord, list[int]]:
    """A fault of a process that stands on the line itself or on the next ones."""
    pid, process, used = one.get("PID"), one.get("PROCESS"), list[int]()
    for line in fetch.after(one.line, one.process, _PROCESS_LINES) if fetch else ():
        text = _HEAD.sub("", line.text.strip())
        rule = "amd_page" if text.startswith("in page") else "amd_process"
        fields = read_line(_GRAMMAR, rule, text)
        if fields is None:
            continue
        used.append(line.number)
        if rule == "amd_process" and pid is None:
            pid, process = fields["PID"][0], fields.get("PROCESS", ["process"])[0]
    fault = _of_the_gpu(one, kind, name)
    if number := integer(pid):  # 0 = the driver does not know it
        fault = msgspec.structs.replace(fault, process=f"{(process or 'process').strip()} pid={number}")
    return msgspec.structs.replace(fault, last_line=max([*one.lines, *used])), used


def _of_the_gpu(one: Seen, kind: FaultKind, name: str) -> FaultRecord:
    fault = build_fault(one, _GRAMMAR, kind, "driver_log", name=name, vendor="amd")
    gpu = one.get("BDF")
    return msgspec.structs.replace(fault, process=f"GPU {gpu}" if gpu else "GPU", device=gpu)


def _with_device(record: FaultRecord, resets: Sequence[Seen]) -> FaultRecord:
    """The oldest form names no device: the reset that follows does."""
    if record.device is not None:
        return record
    reset = next((one for one in resets if 0 < one.line - record.line <= _RESET_LINES), None)
    gpu = reset.get("BDF") if reset else None
    if gpu is None:
        return record
    process = f"GPU {gpu}" if record.process == "GPU" else record.process
    return msgspec.structs.replace(record, device=gpu, process=process)


def _is_uncorrectable(one: Seen) -> bool:
    if one.rule != "amd_ras" or "detected in total" in one.text:
        return False
    return one.get("COUNT") is None or bool(one.number("COUNT"))


def _is_followed(record: FaultRecord, reset: Seen) -> bool:
    return abs(reset.line - record.line) <= _RESET_LINES

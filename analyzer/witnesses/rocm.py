"""ROCm's runtimes: memory faults, queue errors, and the launch trace of AMD_LOG_LEVEL (formats.md 3.17).

A fault aborts the process from a thread of the runtime: no exception, no sticky error. It names a node and an
address. The kernel is named by ``Kernel Name:`` after a queue error (several names: one record each), or,
where kernels ran one by one, by the last ``ShaderName`` before the fault.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, KernelState, ModeRecord, Reading
from analyzer.numbers import need_integer
from analyzer.schema import FaultKind
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault, flat, read_forms, read_line
from analyzer.witnesses.rocm_names import NEAR_LINES, KernelNames
from analyzer.witnesses.symbols import without_parameters

NAME = "rocm"
_AFTER_LINES = 12
_SERIALISED = frozenset({"2", "3"})  # wait after each kernel; 1 waits before it
# A setting, not a sentence about one: prompt, export, other assignments.
_SETTING = r"^(?:[A-Za-z0-9_@:~/.\-]*[+$#>%] |export |env |sudo |-e |[A-Za-z_][A-Za-z0-9_]*=\S* )*"
_SWITCH = "AMD_SERIALIZE_KERNEL="
_FAULTS = ("memory_fault", "memory_error", "exception", "queue", "callback")
_FORMS = (
    Form(rule="memory_fault", begins="Memory access fault by GPU node-"),
    Form(rule="memory_error", begins="Memory critical error by agent node-"),
    Form(rule="exception", begins="HW Exception by GPU node-"),
    Form(rule="queue", begins="Queue at 0x[0-9a-f]+ inactivated due to async error"),
    Form(
        rule="callback", begins="(?:Callback: Queue 0x[0-9a-f]+|Device::callbackQueue) [Aa]borting with error"
    ),
    Form(rule="kernel_name", begins="Kernel Name: "),
    Form(rule="shader", begins=r"(?:\[pid:[0-9]+ +tid: ?0x[0-9a-f]+\] +)?ShaderName : "),
    Form(rule="core", begins="GPU core dump (?:created|failed|skipped)|GPU coredump: execvp failed"),
    Form(rule="serialise", begins=_SETTING + "AMD_SERIALIZE_KERNEL=[0-3]"),
)
_REASONS: tuple[tuple[str, FaultKind], ...] = (
    ("ECC", "ecc_error"),
    ("hang", "hang_timeout"),
    ("Hang", "hang_timeout"),
)
_STATUSES: dict[str, FaultKind] = {
    "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION": "illegal_address",
    "HSA_STATUS_ERROR_MEMORY_FAULT": "illegal_address",
    "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION": "illegal_instruction",
    "HSA_STATUS_ERROR_OUT_OF_RESOURCES": "out_of_memory",
    "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT": "invalid_argument",
    "HSA_STATUS_ERROR_INVALID_ARGUMENT": "invalid_argument",
}


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses = Losses(NAME)
    seen = read_forms(frame, NAME, _FORMS, losses)
    reading = Reading()
    faults = [one for one in seen if one.rule in _FAULTS]
    serialised = [one for one in seen if one.rule == "serialise" and one.get("LEVEL") in _SERIALISED]
    names = KernelNames(faults, seen)
    for at, one in enumerate(faults):
        kernels: list[Seen | None] = [*(names.of(one) or (_last_launched(one, seen) if serialised else []))]
        for kernel in kernels or [None]:
            fault, used = _record(one, kernel, fetch if at < FETCHED else None)
            reading.records.append(_without_launch(fault) if len(kernels) > 1 else fault)
            reading.continuation.extend(used)
    if serialised:
        first = serialised[0]
        mode = ModeRecord(source=first.source, line=first.line, name="launch_blocking", value=True)
        reading.records.append(mode)
    fault_lines = sorted(fault.line for fault in faults)
    for one in seen:
        known = one.rule != "kernel_name" or _near_fault(one, fault_lines)
        (reading.parsed if known else reading.not_mine).extend(one.lines)
    reading.records.sort(key=lambda record: record.line)
    mentions = frame.filter(pl.col("text").str.contains(_SWITCH, literal=True))["line"].to_list()
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    told = {*reading.parsed, *(loss.line for loss in reading.losses)}
    reading.not_mine = sorted({*reading.not_mine, *mentions} - told)
    return reading


def _near_fault(one: Seen, fault_lines: Sequence[int]) -> bool:
    """Profilers print ``Kernel Name:`` too; only the runtimes do so beside a fault."""
    at = bisect_left(fault_lines, one.line - NEAR_LINES)
    return at < len(fault_lines) and fault_lines[at] <= one.line + NEAR_LINES


def _without_launch(fault: FaultRecord) -> FaultRecord:
    """The packet printed beside several names belongs to one of them, nobody says to which."""
    if fault.state is None:
        return fault
    return msgspec.structs.replace(fault, state=msgspec.structs.replace(fault.state, grid=None, block=None))


def _record(one: Seen, kernel: Seen | None, fetch: Fetch | None) -> tuple[FaultRecord, list[int]]:
    """The record of a report. ``kernel``: null = nothing names one; several names give a record each."""
    after = flat(fetch.after(one.line, one.process, _AFTER_LINES)) if fetch else []
    status, used = _status(one, after)
    kind = _kind(one, status)
    fault = build_fault(one, NAME, kind, "device" if kernel else "unknown", name=status, vendor="amd")
    if status is not None and status not in fault.text:
        fault = msgspec.structs.replace(fault, text=f"{fault.text} {status}")
    if kernel is None:
        return fault, used
    state, lines = _state(kernel, status, after)
    used = [*used, *lines]
    last = max([fault.last_line, *kernel.lines[-1:], *used])
    return msgspec.structs.replace(
        fault, kernel=state.kernel, state=state, last_line=max(last, fault.line)
    ), used


def _status(one: Seen, after: Sequence[tuple[int, str]]) -> tuple[str | None, list[int]]:
    """The HSA status: on the line, or on the next one."""
    own = one.get("STATUS")
    if own is not None or one.rule != "queue":
        return own, []
    for number, text in after[:2]:
        fields = read_line(NAME, "status", text.strip()) if "HSA_STATUS" in text else None
        if fields is not None:
            return fields["STATUS"][0], [number]
    return None, []


def _kind(one: Seen, status: str | None) -> FaultKind:
    if one.rule in {"queue", "callback"}:
        return _STATUSES.get(status or "", "launch_failure")
    reason = one.get("REASON") or ""
    kind = next((kind for word, kind in _REASONS if word in reason), None)
    return kind or ("launch_failure" if one.rule == "exception" else "illegal_address")


def _last_launched(one: Seen, seen: Sequence[Seen]) -> list[Seen]:
    """The last ``ShaderName`` of the process before the fault; kernels ran one by one.

    The fault names no pid: where several processes share the log untagged, nobody knows whose kernel it was.
    """
    shaders = [other for other in seen if other.rule == "shader" and other.process == one.process]
    if len({other.get("PID") for other in shaders}) > 1:
        return []
    before = [(other.lines[at - 1], other) for other in shaders if (at := bisect_left(other.lines, one.line))]
    return [max(before, key=lambda pair: pair[0])[1]] if before else []


def _state(
    kernel: Seen, status: str | None, after: Sequence[tuple[int, str]]
) -> tuple[KernelState, list[int]]:
    """The kernel, and its launch dimensions where the runtime prints the dispatch packet."""
    grid = block = None
    used = list[int]()
    for number, text in after:
        at = text.find("grid=[")
        fields = read_line(NAME, "dispatch", text[at : text.rfind("]") + 1]) if at >= 0 else None
        fields = fields or _cut_dispatch(text, at)
        if fields is not None:
            grid, block = (_dim(text) for text in fields["DIM3"][:2])
            used.append(number)
            break
    name = without_parameters(kernel.get("SYMBOL") or "")
    return KernelState(kernel=name, exception=status, grid=grid, block=block), used


def _cut_dispatch(text: str, at: int) -> dict[str, list[str]] | None:
    """``grid=[..], workgroup=[..]`` out of a longer line."""
    end = text.find("]", text.find("workgroup=[")) if at >= 0 else -1
    return read_line(NAME, "dispatch", text[at : end + 1]) if end > at else None


def _dim(text: str) -> tuple[int, int, int]:
    x, y, z = text.strip("[]").split(",")
    return need_integer(x.strip()), need_integer(y.strip()), need_integer(z.strip())


WITNESS = Witness(
    name=NAME,
    program="rocm",
    vendor="amd",
    device_side=True,
    gates=(
        "Memory access fault by GPU node-",
        "Memory critical error by agent node-",
        "HW Exception by GPU node-",
        "inactivated due to async error",
        "borting with error : HSA_STATUS",
        "Kernel Name: ",
        "ShaderName : ",
        "GPU core dump ",
        "GPU coredump: execvp",
        "AMD_SERIALIZE_KERNEL=",
    ),
    read=read,
    grammar="rocm.lark",
)

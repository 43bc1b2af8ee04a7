"""The journal of a child: what it was about to launch, what the device has finished, what raised.

Written by the child (``JournalWriter``, standard library only), read by the parent once the child is dead.
The last line may be cut; a line that does not read is counted, never an error.
"""

from __future__ import annotations

import mmap
import struct
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from analyzer.replay.hooks.journal import FIELDS, JournalWriter
from analyzer.schema import SourceFrame, TensorInfo, Value

__all__ = ["Entry", "Journal", "JournalWriter", "Progress", "TensorSeen", "ends_with_stop", "read_journal"]

KEPT = 50_000  # entries held in memory: two steps of the largest eager models; older ones only count
_TAIL_BYTES = 4096  # more than one ``stopped`` line
_KEPT_ALWAYS = frozenset({"hello", "torch", "max", "failed", "uncaught", "stopped", "skipped", "note"})

Event = Literal[
    "hello", "bye", "torch", "max", "step", "op", "done", "failed", "uncaught", "stopped", "skipped", "note"
]
OpKind = Literal["op", "kernel", "gap", "call"]


class TensorSeen(Value):
    """A tensor of an op. ``storage``: address of its memory; ``low``, ``high``: range of an integer one."""

    shape: list[int | None]
    dtype: str
    device: str
    storage: int | None = None
    low: int | None = None
    high: int | None = None

    def info(self, role: str = "input") -> TensorInfo:
        """The same in the words of the result."""
        return TensorInfo(shape=self.shape, dtype=self.dtype, device=self.device, role=role)


class Entry(Value):
    """One event. ``number`` counts the ops of a process, ``step`` from 0; ``place`` = the user's line.

    ``kind``: ``op`` dispatched, ``kernel`` launched past the dispatcher, ``gap`` an unannounced launch
    between two ops, ``call`` one MAX ``execute()`` of the loaded model ``graph``. ``mutates``: writes into
    its inputs. ``between``: launched outside of any module call, behind step ``step`` or already for the next
    one. ``on_device``: a device is in use. The rest is of an op replay: ``duration_ns`` of a ``done``
    op (``on_device``: by device events, else by the host clock); ``skipped`` ops and notes have ``why``.
    """

    event: Event
    pid: int
    time_ns: int
    number: int | None = None
    name: str | None = None
    kind: OpKind = "op"
    step: int | None = None
    place: SourceFrame | None = None
    inputs: tuple[TensorSeen, ...] = ()
    outputs: tuple[TensorSeen, ...] = ()
    error_type: str | None = None
    error: str | None = None
    chain: tuple[str, ...] = ()
    why: str | None = None
    mutates: bool | None = None
    between: bool = False
    graph: int | None = None
    on_device: bool | None = None
    duration_ns: int | None = None


class Progress(Value):
    """Counters of one process: ops begun, ops that the host has left, the step (-1 = none yet)."""

    begun: int
    finished: int
    step: int


class Journal(Value):
    """What a child wrote. ``total`` entries, of which the last ``KEPT`` and all rare ones are here, in order.

    ``lost``: lines that did not read (the last one of a killed process may be cut).
    """

    entries: tuple[Entry, ...] = ()
    total: int = 0
    lost: int = 0
    progress: tuple[Progress, ...] = ()

    def of(self, *events: Event) -> Iterator[Entry]:
        """The entries of some events, in order."""
        return (entry for entry in self.entries if entry.event in events)

    def begun(self, entry: Entry) -> Entry:
        """The entry that announced the op of ``entry``; itself if there is none (outside the window)."""
        same = (one for one in self.of("op") if (one.pid, one.number) == (entry.pid, entry.number))
        return next(same, entry)

    def open_op(self) -> Entry | None:
        """The last op that was begun and neither finished nor raised: the child was in it when it ended."""
        opened: dict[tuple[int, int | None], Entry] = {}
        for entry in self.of("op", "done", "failed"):
            if entry.event == "op":
                opened[entry.pid, entry.number] = entry
            else:
                opened.pop((entry.pid, entry.number), None)
        return next(reversed(opened.values()), None)


class _Wire(msgspec.Struct):
    """A line as the child writes it; ``place`` is a list of file, line, function, text."""

    place: tuple[str, int, str, str | None] | None = None


def read_journal(path: Path) -> Journal:
    """Read a journal and the counters beside it; no file = an empty journal (the hook never ran)."""
    if not path.exists():
        return Journal()
    rare: list[tuple[int, Entry]] = []
    recent: deque[tuple[int, Entry]] = deque(maxlen=KEPT)
    total = lost = 0
    with path.open("rb") as lines:
        for line in lines:
            entry = _read_entry(line)
            if entry is None:
                lost += 1
                continue
            total += 1
            (rare if entry.event in _KEPT_ALWAYS else recent).append((total, entry))
    ordered = sorted([*rare, *recent], key=lambda numbered: numbered[0])
    return Journal(
        entries=tuple(entry for _, entry in ordered), total=total, lost=lost, progress=_progress(path)
    )


def _read_entry(line: bytes) -> Entry | None:
    try:
        wire = msgspec.json.decode(line, type=_Wire)
        raw = msgspec.json.decode(line)
        if wire.place is not None:
            file, number, function, text = wire.place
            raw["place"] = {"file": file, "line": number, "function": function, "text": text}
        return msgspec.convert(raw, Entry)
    except msgspec.MsgspecError:
        return None


def _progress(path: Path) -> tuple[Progress, ...]:
    found = []
    for file in sorted(path.parent.glob(f"{path.name}.*.progress")):
        data = file.read_bytes()
        if len(data) == FIELDS * 8:
            begun, finished, step = struct.unpack("=3q", data)
            found.append(Progress(begun=begun, finished=finished, step=step))
    return tuple(found)


def ends_with_stop(path: Path) -> bool:
    """Whether a process of the child has ended the run on purpose; others may still be waiting for it."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return False
    if not size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.rfind(b'"event": "stopped"', max(0, size - _TAIL_BYTES)) >= 0

"""The file of marks: what each stream of a process has finished, written by the device itself.

The device writes, in stream order, the number of each op that it finished into a slot of its stream. The file
is in memory of the operating system (``/dev/shm``), mapped and registered with CUDA, so it outlives the
process however that ends (observed.md 37-39).

Each mark has a number: they count up in the process, in the order in which the marks were enqueued. That is
not the order of the ops where one launches others.

Layout, little-endian. A header page: magic, version u32, pid u32, number of slots u32, place of the slots
u32, then at 64 one text (u32 length, bytes): why there are no marks, empty where there are. A slot of 64
bytes a stream: ``done`` u32 (the device: lower half of the last mark that it came to; of a CUDA graph, in its
last replay), padding u32, ``last`` u64 (the host: the last mark that was enqueued), ``stream`` u64 (handle),
``device`` i32, ``used`` u32, ``graph`` 32 bytes of text (the capture whose ops the slot is of). Behind the
slots an arena of values that the device copied (``values.py``): at 24 of the header its place u32 and size
u32, at 32 its head u64. A place there is its offset in the endless stream of bytes ever reserved; it is at
``place % size``, and still there if ``head - place <= size``. The last quarter is not used again: places
there are counted from ``FIXED`` on, and belong to CUDA graphs, which write there at each replay.

Imports nothing but the standard library: it runs in the Python of the recorded program.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
from pathlib import Path
from typing import NamedTuple

MAGIC = b"TAOPMARK"
VERSION = 1
HEADER = struct.Struct("<8sIIII")
ARENA_AT, HEAD_AT, REASON_AT = 24, 32, 64
SLOTS_AT = 4096
SLOT = struct.Struct("<IIQQiI32s")
SLOT_BYTES = 64
SLOTS = 960
VALUES_AT = SLOTS_AT + SLOTS * SLOT_BYTES
VALUE_BYTES = 3 << 20  # used again and again: the inputs of some thousand ops
FIXED_BYTES = 1 << 20
FILE_BYTES = VALUES_AT + VALUE_BYTES + FIXED_BYTES
FIXED = 1 << 62
SHARED = Path("/dev/shm")  # noqa: S108 - memory that the device can map; a disk's file system is refused
_LOW = 1 << 32


class Mark(NamedTuple):
    """One stream. ``done``: the last mark that the device came to, 0 = none; ``last``: the last one enqueued.

    ``stream`` counts the streams of the process in the order in which they were used. ``graph``: the slot is
    of the ops of that CUDA graph, as its last replay left it.
    """

    stream: int
    device: int
    handle: int
    graph: str
    last: int
    done: int


class Marks(NamedTuple):
    """What a file of marks says. ``why_not``: why the device could write none; empty = it could."""

    pid: int
    why_not: str
    streams: tuple[Mark, ...]
    head: int
    arena: bytes

    def is_done(self, stream: int, number: int) -> bool:
        """Whether the device came to a mark."""
        return stream < len(self.streams) and number <= self.streams[stream].done

    def values(self, place: int, size: int) -> bytes | None:
        """Bytes of the arena; null = overwritten since."""
        if place >= FIXED:
            start = VALUE_BYTES + place - FIXED
        elif self.head - place > VALUE_BYTES:
            return None
        else:
            start = place % VALUE_BYTES
        return self.arena[start : start + size]


def path_of(ring: Path) -> Path:
    """Where the marks of a ring are: found again from the ring alone, by whoever comes after the process."""
    name = hashlib.sha256(bytes(ring.absolute())).hexdigest()[:24]
    return SHARED / f"trace-analyze-{name}.marks"


def read_marks(ring: Path) -> Marks | None:
    """The marks of a ring; null = there are none, or they are not readable."""
    try:
        data = path_of(ring).read_bytes()
    except OSError:
        return None
    if len(data) < FILE_BYTES:
        return None
    magic, version, pid, slots, at = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION or at + slots * SLOT_BYTES > len(data):
        return None
    (length,) = struct.unpack_from("<I", data, REASON_AT)
    reason = data[REASON_AT + 4 : REASON_AT + 4 + min(length, 1024)].decode(errors="replace")
    streams = []
    for index in range(slots):
        done, _, last, handle, device, used, graph = SLOT.unpack_from(data, at + index * SLOT_BYTES)
        if not used:
            break
        streams.append(
            Mark(
                stream=index,
                device=device,
                handle=handle,
                graph=graph.rstrip(b"\0").decode(errors="replace"),
                last=last,
                done=_whole(done, last),
            )
        )
    (head,) = struct.unpack_from("<Q", data, HEAD_AT)
    return Marks(pid, reason, tuple(streams), head, data[VALUES_AT:])


def remove_marks(ring: Path) -> None:
    """Remove the marks of a ring, if there are any."""
    with contextlib.suppress(OSError):
        path_of(ring).unlink()


def _whole(done: int, last: int) -> int:
    """The number that the device wrote the lower half of: the largest one that is not above ``last``."""
    whole = last - last % _LOW + done
    return whole if whole <= last or whole < _LOW else whole - _LOW

"""Marks that the device writes behind each op, in stream order: what it finished is known after any crash.

``cuStreamWriteValue32`` enqueues a write of the op's number into mapped memory (observed.md 37): no wait, no
event, no kernel; inside a captured CUDA graph it becomes a node that fires at each replay (38). Runs in the
recorded program, at every op: what the driver refuses is said in the file, and the program goes on without
marks.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analyzer.record.ops.marks_file import (
    ARENA_AT,
    FILE_BYTES,
    FIXED,
    FIXED_BYTES,
    HEAD_AT,
    HEADER,
    MAGIC,
    REASON_AT,
    SHARED,
    SLOT,
    SLOT_BYTES,
    SLOTS,
    SLOTS_AT,
    VALUE_BYTES,
    VALUES_AT,
    VERSION,
    path_of,
)

_PORTABLE_MAPPED = 1 | 2
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: a registration must not end somebody's capture
_U32 = 0xFFFFFFFF
# The context is lost, not the marks.
_LOST = frozenset({4, 201, 214, 220, 226, 700, 702, 709, 710, *range(714, 720), 721})
_KEPT: list[mmap.mmap] = []  # the device may still write where a log was closed: never unmapped
_MOST_KEPT = 64


# The driver's library; its functions to register memory, to find the device's address, to write and to copy.
CUDA = (
    "libcuda.so.1",
    (
        "cuMemHostRegister_v2",
        "cuMemHostGetDevicePointer_v2",
        "cuStreamWriteValue32_v2",
        "cuMemcpyDtoHAsync_v2",
    ),
)
HIP = (
    "libamdhip64.so",
    ("hipHostRegister", "hipHostGetDevicePointer", "hipStreamWriteValue32", "hipMemcpyDtoHAsync"),
)


class _Slot:
    """Where the device writes for one stream, and the words that the host keeps."""

    __slots__ = ("index", "pointer", "word")

    def __init__(self, index: int, base: int) -> None:
        self.index = index
        self.pointer = base + SLOTS_AT + index * SLOT_BYTES
        self.word = (SLOTS_AT + index * SLOT_BYTES) // 8 + 1  # of ``last``


class DeviceMarks:
    """Marks of one process; ``mark`` is called after each launch. One that cannot mark does nothing."""

    def __init__(self, ring: str) -> None:
        """Make the file beside (in memory) the ring.

        Args:
            ring: Path of the ring whose ops are marked.
        """
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)  # next() is atomic: threads share it
        self._slots: dict[tuple[int, int, str | None], _Slot] = {}
        self._head, self._fixed = 0, 0
        self._copy: Any = None
        self._host = 0
        self._path = path_of(Path(ring))
        self._write: Any = None
        self._base = 0
        self._off = False
        self._map: mmap.mmap | None = None
        try:
            self._make()
        except OSError as error:
            self._off = True
            self._why = f"no file in {SHARED}: {error.strerror or error}"

    def _make(self) -> None:
        descriptor = os.open(
            self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            os.ftruncate(descriptor, FILE_BYTES)
            self._map = mmap.mmap(descriptor, FILE_BYTES)
        finally:
            os.close(descriptor)
        _KEPT.append(self._map)
        HEADER.pack_into(self._map, 0, MAGIC, VERSION, os.getpid(), SLOTS, SLOTS_AT)
        struct.pack_into("<II", self._map, ARENA_AT, VALUES_AT, VALUE_BYTES)
        self._words = memoryview(self._map).cast("Q")

    def mark(self, device: int, capture: str | None = None) -> int:
        """Enqueue the mark of an op behind it.

        Args:
            device: Number of its CUDA device.
            capture: Name of the CUDA graph that is being captured; null = none.

        Returns:
            Its mark: number << 16, and the stream from 1 on; 0 = none.
        """
        if self._off or device < 0:
            return 0
        stream = self._stream(device)
        slot = self._slots.get((device, stream, capture)) or self._open(device, stream, capture)
        if slot is None:
            return 0
        if not stream and device != self._current():
            return 0  # the default stream is that of the current device: it would be marked instead
        number = next(self._numbers)
        code = self._write(stream, slot.pointer, number & _U32, 0)
        if code:
            if code not in _LOST:
                self._stop(f"cuStreamWriteValue32 was refused with code {code}")
            return 0
        self._words[slot.word] = number
        return number << 16 | slot.index + 1

    def close(self) -> None:
        """No op is marked any more; the file stays. The device may still write, so it stays mapped."""
        self._off = True

    def copy(self, source: int, size: int, place: int, device: int) -> bool:
        """Enqueue a copy of device memory into the arena of values.

        Args:
            source: Address on the device.
            size: Bytes.
            place: Of the arena, as ``reserve`` gave it.
            device: Number of the CUDA device.
        """
        at = VALUES_AT + (VALUE_BYTES + place - FIXED if place >= FIXED else place % VALUE_BYTES)
        return not self._copy(self._host + at, source, size, self._stream(device))

    def reserve(self, size: int, device: int, capture: str | None) -> int | None:
        """A place for values; null = there can be none. Those of a captured graph are never given again."""
        stream = -1 if self._off else self._stream(device)
        if stream < 0 or (not stream and device != self._current()):
            return None
        if self._slots.get((device, stream, capture)) is None and not self._open(device, stream, capture):
            return None
        with self._lock:
            if capture is not None:
                place, self._fixed = self._fixed, self._fixed + size
                return FIXED + place if self._fixed <= FIXED_BYTES else None
            place = self._head
            if place % VALUE_BYTES + size > VALUE_BYTES:
                place += VALUE_BYTES - place % VALUE_BYTES
            self._head = place + size
            self._words[HEAD_AT // 8] = self._head
            return place

    def _open(self, device: int, stream: int, capture: str | None) -> _Slot | None:
        """The slot of a stream that is met for the first time; null = there can be none now."""
        key = (device, stream, capture)
        with self._lock:
            if key in self._slots:
                return self._slots[key]
            if not self._base and not (self._register() if capture is None else False):
                return None  # not during a capture: the next op outside of one tries again
            index = len(self._slots)
            if index >= SLOTS or self._map is None:
                return None
            slot = _Slot(index, self._base)
            at = SLOTS_AT + index * SLOT_BYTES
            SLOT.pack_into(self._map, at, 0, 0, 0, stream, device, 1, (capture or "").encode()[:32])
            self._slots[key] = slot
            return slot

    def _register(self) -> bool:
        """Let the device write into the file. A context is current: an op of it was just launched."""
        if len(_KEPT) > _MOST_KEPT:
            return self._stop("this process has made too many op logs")
        library, names = driver_api()
        try:
            driver = load_driver(library)
            register, get_pointer, write, copy = (getattr(driver, name) for name in names)
        except (OSError, AttributeError) as error:
            return self._stop(f"this driver cannot write marks: {error}")
        write.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint]
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))  # type: ignore[arg-type]
        pointer = ctypes.c_uint64()
        with _relaxed(driver):
            code = register(ctypes.c_void_p(address), ctypes.c_size_t(FILE_BYTES), _PORTABLE_MAPPED)
            code = code or get_pointer(ctypes.byref(pointer), ctypes.c_void_p(address), 0)
        if code:
            return code not in _LOST and self._stop(f"the driver refused to map the marks, with code {code}")
        copy.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
        self._write, self._base, self._copy, self._host = write, pointer.value, copy, address
        return True

    def _stream(self, device: int) -> int:
        """The handle of the current stream of a device; learns where torch tells it."""
        import torch

        self._current = torch._C._cuda_getDevice  # type: ignore[method-assign, attr-defined, unused-ignore]  # noqa: SLF001
        self._stream = torch._C._cuda_getCurrentRawStream  # type: ignore[method-assign, unused-ignore]  # noqa: SLF001
        return int(self._stream(device))

    def _current(self) -> int:
        """The current device; replaced by torch's own function at the first mark."""
        return -1

    def _stop(self, why: str) -> bool:
        """Give up, and say why in the file."""
        self._off = True
        if self._map is not None:
            text = why.encode()[:1024]
            struct.pack_into("<I", self._map, REASON_AT, len(text))
            self._map[REASON_AT + 4 : REASON_AT + 4 + len(text)] = text
        return False


def load_driver(library: str) -> Any:
    """The library, which the program has loaded already."""
    return ctypes.CDLL(library)


def driver_api() -> tuple[str, tuple[str, ...]]:
    """``CUDA``, or ``HIP`` where torch is built for it."""
    import torch

    return HIP if torch.version.hip else CUDA


@contextlib.contextmanager
def _relaxed(driver: Any) -> Iterator[None]:
    """This thread's calls are not forbidden by a capture of another thread."""
    mode = ctypes.c_int(_RELAXED)
    known = hasattr(driver, "cuThreadExchangeStreamCaptureMode")
    if known:
        driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    try:
        yield
    finally:
        if known:
            driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

"""The ring of the last ops, in a file that is mapped into the recorded process.

What is in a mapped file outlives the process: SIGKILL, SIGSEGV and abort lose nothing that was written
before. An op costs one 64-byte slot; its texts (name with operands, Python frames) are written once and
pointed to, because a server launches a million ops with about a thousand distinct texts (observed.md,
"Speeds").

Layout, little-endian: header of 128 bytes, ``slots`` slots, an arena of texts, an arena of inputs. A place in
an arena is its offset in the endless stream of bytes ever written there (from 1; 0 = none): it is at
``place % size``, and still there if ``head - place <= size``. A record there is a u32 length and its bytes,
never across the arena's end. A slot is valid if its first and last word are equal; they are ``id + 1``. Of
the thread's identifier the lower half is kept; ``step`` counts calls of the outermost module (``steps.py``).

Imports nothing but the standard library: it runs in the Python of the recorded program.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from pathlib import Path
from threading import get_ident
from time import time_ns

MAGIC = b"TAOPRING"
VERSION = 3
HEADER = struct.Struct("<8sIIQQQQQQ")  # magic, version, pid, slots, text size, input size, heads, start time
HEADER_BYTES = 128
HEADS_AT = 40  # offset of the two heads in the header
SLOT = struct.Struct(
    "<QqqQQQIIQQ"
)  # id + 1, launch_ns, done_ns, op text, frames, inputs, thread, step, mark (marks.py), id + 1
_WORDS = SLOT.size // 8  # of a slot
_FIRST = HEADER_BYTES // 8  # word at which the slots begin
_DONE, _MARK = 2, 7  # words of done_ns and mark in a slot
_U32 = 0xFFFFFFFF
LENGTH = struct.Struct("<I")
_WORD = struct.Struct("<Q")
KNOWN_TEXTS = 1 << 16  # places that are remembered; more distinct texts than this and they are written again


class Ring:
    """Writer. One for each process; threads share it."""

    def __init__(self, path: str, slots: int, text_bytes: int, input_bytes: int) -> None:
        """Make the file, whole: a store into a page that the disk has no room for would kill the program.

        Args:
            path: A file there is replaced.
            slots: Ops that are kept.
            text_bytes: Size of the text arena.
            input_bytes: Size of the input arena; 0 = none.

        Raises:
            OSError: It cannot be made.
        """
        self.path = path
        self._slots = slots
        self._sizes = (text_bytes, input_bytes)
        self._bases = (HEADER_BYTES + slots * SLOT.size, HEADER_BYTES + slots * SLOT.size + text_bytes)
        self._heads = [1, 1]
        self._lock = threading.Lock()
        self._places: dict[bytes, int] = {}
        with Path(path).open("wb+") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, self._bases[1] + input_bytes)
                self._map = mmap.mmap(file.fileno(), 0)
            except OSError:
                Path(path).unlink(missing_ok=True)
                raise
        self._words = memoryview(self._map).cast("q")
        self._pack = SLOT.pack_into
        self._half = text_bytes // 2
        fields = (VERSION, os.getpid(), slots, text_bytes, input_bytes, *self._heads, time_ns())
        HEADER.pack_into(self._map, 0, MAGIC, *fields)

    def launch(self, ident: int, op: bytes, frames: bytes, inputs: bytes | None, step: int = 0) -> None:
        """Note that an op is about to be launched.

        Args:
            ident: From 0, one more each time.
            op: Its line: name, line end, details.
            frames: Its Python stack, a line a frame; may be empty.
            inputs: Saved inputs (``inputs.py``); null = none.
            step: ``Recorder.step``.
        """
        # What is in the older half is written anew: no slot shall outlive its texts.
        places, oldest = self._places, self._heads[0] - self._half
        op_place = places.get(op, 0)
        if op_place <= oldest or not op_place:
            op_place = self._placed(op)
        frames_place = places.get(frames, 0)
        if frames_place <= oldest or not frames_place:
            frames_place = self._placed(frames) if frames else 0
        check = ident + 1
        self._pack(
            self._map,
            HEADER_BYTES + ident % self._slots * SLOT.size,
            check,
            time_ns(),
            0,
            op_place,
            frames_place,
            self._append(1, inputs) if inputs is not None else 0,
            get_ident() & _U32,
            step & _U32,
            0,
            check,
        )

    def returned(self, ident: int) -> None:
        """Note that the host left the call (not that the device has finished, observed.md 7)."""
        at = _FIRST + ident % self._slots * _WORDS
        if self._words[at] == ident + 1:  # not yet overwritten by a younger op
            self._words[at + _DONE] = time_ns()

    def marked(self, ident: int, mark: int) -> None:
        """Note the mark of an op (``DeviceMarks.mark``)."""
        at = _FIRST + ident % self._slots * _WORDS
        if self._words[at] == ident + 1:
            self._words[at + _MARK] = mark

    def close(self) -> None:
        """Unmap; the file stays."""
        self._words.release()
        self._map.close()

    def _placed(self, text: bytes) -> int:
        """Where ``text`` stands now that it was written."""
        place = self._append(0, text)
        if len(self._places) >= KNOWN_TEXTS:
            self._places.clear()
        self._places[text] = place
        return place

    def _append(self, arena: int, data: bytes) -> int:
        size = self._sizes[arena]
        needed = LENGTH.size + len(data)
        if needed > size // 4:  # one that would push out too much of the others
            return 0
        with self._lock:
            place = self._heads[arena]
            at = place % size
            if at + needed > size:
                place += size - at
                at = 0
            head = place + needed
            # The head moves first: a reader takes what is being overwritten for gone, not for a text.
            self._heads[arena] = head
            _WORD.pack_into(self._map, HEADS_AT + 8 * arena, head)
            start = self._bases[arena] + at
            LENGTH.pack_into(self._map, start, len(data))
            self._map[start + LENGTH.size : start + needed] = data
        return place

"""Lines with a time and a stream, in the form of the Kubernetes container log (CRI, formats.md 6).

``2026-11-30T01:02:03.123456789Z stderr F <text>``. ``F`` ends a line; ``P`` is a part of one: too long to
hold back, not ended for a second, or cut by the end of the stream. There is one stamp a read, which is when
the text was seen; it is put in front of every line with one ``replace``, not in a loop.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal

Stream = Literal["stdout", "stderr"]

PART_BYTES = 64 << 10  # a longer line is written in parts: memory stays bounded
_NS = 1_000_000_000
_FULL, _PART = b" F ", b" P "


class Clock:
    """UTC in nanoseconds that never goes back, though the system clock may be set."""

    def __init__(self) -> None:
        self._last_ns = 0

    def now_ns(self) -> int:
        """Nanoseconds since 1970, at least the last answer."""
        self._last_ns = max(self._last_ns, time.time_ns())
        return self._last_ns


_second: tuple[int, bytes] = (-1, b"")


def cri_time(time_ns: int) -> bytes:
    """``2026-11-30T01:02:03.123456789Z``: always nine digits, so that stamps sort as text."""
    global _second  # noqa: PLW0603 - one formatted second is kept; ten thousand stamps share it
    seconds, fraction = divmod(time_ns, _NS)
    if _second[0] != seconds:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        _second = (seconds, text.encode())
    return b"%b.%09dZ" % (_second[1], fraction)


def stamp_lines(text: bytes, time_ns: int, stream: Stream) -> bytes:
    """Stamp whole lines; ``text`` ends with a line end."""
    head = cri_time(time_ns) + b" " + stream.encode() + _FULL
    return head + text[:-1].replace(b"\n", b"\n" + head) + b"\n"


class Stamper:
    """Stamps one stream. Holds back at most one unfinished line of ``PART_BYTES``."""

    def __init__(self, stream: Stream) -> None:
        self.stream: Stream = stream
        self.in_parts = False
        self._rest = b""

    @property
    def has_rest(self) -> bool:
        """Whether an unfinished line is held back."""
        return bool(self._rest)

    def feed(self, data: bytes, time_ns: int) -> bytes:
        """The lines that ``data`` ends, stamped; what is unfinished waits.

        Args:
            data: Any bytes.
            time_ns: When they were read.
        """
        if self._rest:
            data = self._rest + data
        cut = data.rfind(b"\n") + 1
        out = stamp_lines(data[:cut], time_ns, self.stream) if cut else b""
        if cut:
            self.in_parts = False
        self._rest = data[cut:]
        if len(self._rest) >= PART_BYTES:
            out += self._part(_character_border(self._rest), time_ns)
        return out

    def flush(self, time_ns: int) -> bytes:
        """What is held back, as a part: the line may stay unfinished for long (a prompt, a hang)."""
        return self._part(len(self._rest), time_ns) if self._rest else b""

    def finish(self, time_ns: int) -> tuple[bytes, bool]:
        """End of the stream: the rest as a part, and an empty ``F`` that ends the line for readers.

        Returns:
            Stamped bytes, and whether the stream ended inside a line (its last line end is not its own).
        """
        out = self.flush(time_ns)
        if not self.in_parts:
            return out, False
        self.in_parts = False
        return out + stamp_lines(b"\n", time_ns, self.stream), True

    def _part(self, size: int, time_ns: int) -> bytes:
        text, self._rest = self._rest[:size], self._rest[size:]
        self.in_parts = True
        return cri_time(time_ns) + b" " + self.stream.encode() + _PART + text + b"\n"


def _character_border(data: bytes) -> int:
    """The end of the last whole UTF-8 character; ``len(data)`` where the end is no UTF-8 at all."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return len(data) - back if needed > back else len(data)
    return len(data)


def split_streams(log: Iterable[bytes]) -> dict[str, bytes]:
    """What each stream wrote: stamps off, parts joined.

    Args:
        log: Lines of a stamped log with their line ends.

    Returns:
        Stream to bytes. An unterminated last line has gained a line end (the trailer says so).
    """
    found: dict[str, list[bytes]] = {}
    for line in log:
        _, stream, kind, text = line.split(b" ", 3)
        found.setdefault(stream.decode(), []).append(text if kind == b"F" else text[:-1])
    return {stream: b"".join(texts) for stream, texts in found.items()}

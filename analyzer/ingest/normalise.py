"""Copies a log so that it can be scanned as lines of valid UTF-8 (formats.md 6 and 7.4).

Polars refuses a file with one invalid byte, and container runtimes cut long lines into parts. Both are
mended in a copy. Line numbers are what every report cites, so the copy has exactly the lines of the source.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from analyzer.ingest.long_lines import Target
from analyzer.schema import Value

CHUNK_BYTES = 1 << 20
HELD_CHARACTERS = 1 << 26  # one line, or the lines behind an open part: beyond it parts are left as they are

# The longer mark first: the one of UTF-32 begins like that of UTF-16.
_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECODE: dict[str, Callable[[bytes, str, bool], tuple[str, int]]] = {
    "utf-8": codecs.utf_8_decode,
    "utf-16-le": codecs.utf_16_le_decode,
    "utf-16-be": codecs.utf_16_be_decode,
    "utf-32-le": codecs.utf_32_le_decode,
    "utf-32-be": codecs.utf_32_be_decode,
}
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CRI = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T\S+ (stdout|stderr) )([PF])(?: |$)")
_DOCKER_HEAD = re.compile(r'\{ ?"log": ?"')
_DOCKER_TAIL = re.compile(r'", ?"stream": ?"')  # inside the text its quotes would be escaped


class RewriteNotes(Value):
    """What ``rewrite`` changed.

    ``encoding``: how the source was read. ``replaced``: bytes that could not be decoded;
    ``replacements``: the U+FFFD put in their place (several bytes can share one). ``joined_lines``: lines
    that are empty now as their text went to the first part. ``unjoined_parts``: first parts whose end
    never came or came too late; their text is whole up to there.
    """

    encoding: str = "utf-8"
    replaced: int = 0
    replacements: int = 0
    joined_lines: int = 0
    unjoined_parts: int = 0


def rewrite(
    source: BinaryIO, target: Target, *, join_cri: bool = False, join_docker: bool = False
) -> RewriteNotes:
    """Copy ``source`` to ``target`` as UTF-8 without byte order mark, with as many lines as it has.

    Args:
        source: Read from where it stands to its end. UTF-8, or UTF-16 / UTF-32 with a byte order mark.
        target: Written in chunks; memory is bounded by ``HELD_CHARACTERS``, not by the size of the source.
        join_cri: Join the ``P`` parts of a container runtime's line up to its ``F`` part, per stream.
        join_docker: Join json-file records whose text has no line end with the next ones of the stream.

    Returns:
        What was changed. The joined text stands at the line of the first part; the lines of the others
        are empty.

    Raises:
        OSError: Reading or writing failed.
    """
    decoder = _Decoder(source)
    joiner = None
    if join_cri or join_docker:
        joiner = _Joiner(target, cri=join_cri, docker=join_docker)
    for text in decoder.texts():
        if joiner is None:
            target.write(text.encode("utf-8"))
        else:
            joiner.feed(text)
    if joiner is not None:
        joiner.close()
    return RewriteNotes(
        encoding=decoder.encoding,
        replaced=decoder.replaced,
        replacements=decoder.replacements,
        joined_lines=joiner.joined_lines if joiner else 0,
        unjoined_parts=joiner.unjoined_parts if joiner else 0,
    )


class _Decoder:
    """Decodes a stream chunk by chunk and counts what it had to replace."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.encoding = "utf-8"
        self.replaced = 0
        self.replacements = 0

    def texts(self) -> Iterator[str]:
        """The text of the source; a character is never cut between two pieces."""
        data = self._without_bom(self._read_start())
        while True:
            chunk = self._source.read(CHUNK_BYTES)
            data += chunk
            text, used = self._decode(data, final=not chunk)
            yield text
            if not chunk:
                return
            data = data[used:]

    def _read_start(self) -> bytes:
        """Enough bytes to see any byte order mark; a pipe may give fewer at a time."""
        start = b""
        while len(start) < 4 and (more := self._source.read(CHUNK_BYTES)):
            start += more
        return start

    def _without_bom(self, start: bytes) -> bytes:
        for bom, encoding in _BOMS:
            if start.startswith(bom):
                self.encoding = encoding
                return start[len(bom) :]
        return start

    def _decode(self, data: bytes, *, final: bool) -> tuple[str, int]:
        decode = _DECODE[self.encoding]
        try:
            return decode(data, "strict", final)
        except UnicodeDecodeError:
            text, used = decode(data, "replace", final)
        # What is valid without the rest tells how much was replaced: a U+FFFD can also stand in the source.
        valid, _ = decode(data, "ignore", final)
        self.replaced += used - len(valid.encode(self.encoding))
        self.replacements += text.count(_REPLACEMENT) - valid.count(_REPLACEMENT)
        return text, used


class _Part(NamedTuple):
    """A line of a container log, cut up: ``head body tail`` with its flag in between for CRI."""

    head: str
    body: str
    tail: str
    stream: str
    is_last: bool


class _Open:
    """A line whose first part stands at ``slot`` of the held lines and whose last part is still to come."""

    def __init__(self, slot: int, first: _Part) -> None:
        self.slot = slot
        self.first = first
        self.bodies = [first.body]


class _Joiner:
    """Writes lines in order and holds back only those that stand behind an open part."""

    def __init__(self, target: Target, *, cri: bool, docker: bool) -> None:
        self._target = target
        self._readers = [read for read, wanted in ((_read_cri, cri), (_read_docker, docker)) if wanted]
        self._pieces: list[str] = []  # the beginning of a line whose end was not read yet
        self._pieces_size = 0
        self._is_overlong = False
        self._held: list[str] = []
        self._held_size = 0
        self._open: dict[str, _Open] = {}
        self.joined_lines = 0
        self.unjoined_parts = 0

    def feed(self, text: str) -> None:
        """Take the next piece of the text, cut anywhere."""
        first, *rest = text.split("\n")
        self._piece(first)
        for line in rest:
            self._end_line()
            self._piece(line)

    def close(self) -> None:
        """Write what is held; the text ends here."""
        if self._pieces and not self._is_overlong:
            self._take("".join(self._pieces), end="")
        self._release()

    def _piece(self, piece: str) -> None:
        if self._is_overlong:
            self._write(piece)
            return
        self._pieces.append(piece)
        self._pieces_size += len(piece)
        if self._pieces_size > HELD_CHARACTERS:
            self._release()
            self._write("".join(self._pieces))
            self._is_overlong = True

    def _end_line(self) -> None:
        if self._is_overlong:
            self._write("\n")
        else:
            self._take("".join(self._pieces), end="\n")
        self._pieces.clear()
        self._pieces_size = 0
        self._is_overlong = False

    def _take(self, line: str, *, end: str) -> None:
        """Write a whole line, hold it, or add it to the open part of its stream."""
        part = next((part for read in self._readers if (part := read(line))), None)
        if part is None:
            self._hold(line + end)
        elif part.stream in self._open:
            self._join(self._open[part.stream], part)
        elif part.is_last:
            self._hold(line + end)
        else:
            self._open[part.stream] = _Open(len(self._held), part)
            self._hold(line + end)
        if not self._open or self._held_size > HELD_CHARACTERS:
            self._release()

    def _join(self, opened: _Open, part: _Part) -> None:
        opened.bodies.append(part.body)
        self._held_size += len(part.body)
        self._held.append("\n")  # also for a last line without end: an empty text there would be no line
        self.joined_lines += 1
        if part.is_last:
            self._settle(opened, is_last=True)
            del self._open[part.stream]

    def _settle(self, opened: _Open, *, is_last: bool) -> None:
        """Put the joined text where the first part stands."""
        first = opened.first
        end = "\n" if self._held[opened.slot].endswith("\n") else ""
        flag = "" if first.tail else ("F " if is_last else "P ")
        self._held[opened.slot] = first.head + flag + "".join(opened.bodies) + first.tail + end

    def _hold(self, line: str) -> None:
        self._held.append(line)
        self._held_size += len(line)

    def _release(self) -> None:
        for opened in self._open.values():
            self._settle(opened, is_last=False)
            self.unjoined_parts += 1
        self._open.clear()
        self._write("".join(self._held))
        self._held.clear()
        self._held_size = 0

    def _write(self, text: str) -> None:
        self._target.write(text.encode("utf-8"))


def _read_cri(line: str) -> _Part | None:
    found = _CRI.match(line)
    if found is None:
        return None
    head, stream, flag = found.groups()
    return _Part(head, line[found.end() :], "", stream, flag == "F")


def _read_docker(line: str) -> _Part | None:
    head = _DOCKER_HEAD.match(line)
    tail = _DOCKER_TAIL.search(line, head.end()) if head else None
    if head is None or tail is None:
        return None
    stream, quote, _ = line[tail.end() :].partition('"')
    if not quote:
        return None
    body = line[head.end() : tail.start()]
    return _Part(head.group(), body, line[tail.start() :], stream, _ends_line(body))


def _ends_line(body: str) -> bool:
    """Whether escaped text ends in a line end; behind an odd number of backslashes ``n`` is a letter."""
    if not body.endswith("\\n"):
        return False
    before = body[:-2]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0

"""Copies journals so that their messages are lines of text (``journalctl -o export``, ``-o json``).

In an export an entry has a line for each field, and a message with a control character or a line end is
binary; in JSON it is then a list of numbers. The copy has exactly the lines of the source, so that line
numbers stay: the other fields become lines of a process of their own, which is no writer of the log.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, NamedTuple

from analyzer.ingest.long_lines import Target, bounded_line
from analyzer.numbers import natural

_CHUNK_BYTES = 1 << 20
_MAX_FIELD_BYTES = 1 << 26  # a size beyond it is no size: the text is not what it looks like
_SIZE_BYTES = 8
_EXPORT = re.compile(rb"(?:__CURSOR|__REALTIME_TIMESTAMP)=[^\n]*\n(?:__|_BOOT_ID=)")
_JSON = re.compile(rb'(?m)^\{.*"__REALTIME_TIMESTAMP" ?:')
_BYTES = re.compile(rb'("MESSAGE" ?: ?)(\[[0-9, ]+\])')
_FIELD = "fields[0]"  # who "writes" the lines of the other fields
_LATEST_MICROS = 10**16 - 1  # sixteen digits: the year 2286
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_export(sample: bytes) -> bool:
    """Whether a file begins like ``journalctl -o export``."""
    return _EXPORT.match(sample) is not None


def is_json(sample: bytes) -> bool:
    """Whether a file holds entries of ``journalctl -o json``."""
    return _JSON.search(sample) is not None


def rewrite_json(source: BinaryIO, target: Target) -> None:
    """Copy with messages that are lists of bytes as strings: the gates of the scan look at plain text."""
    while chunk := source.read(_CHUNK_BYTES):
        target.write(_BYTES.sub(_as_string, chunk + source.readline()))


def _as_string(found: re.Match[bytes]) -> bytes:
    values = [value for value in json.loads(found.group(2)) if value < 256]
    return found.group(1) + json.dumps(bytes(values).decode("utf-8", "replace")).encode()


class _Field(NamedTuple):
    """A field of an entry; ``lines``: how many it takes in the file; ``ended``: the last with a line end."""

    name: bytes
    value: bytes
    lines: int
    ended: bool


def rewrite_export(source: BinaryIO, target: Target) -> None:
    """Copy an export as ``journalctl -o short-iso-precise`` shows it, a line for each line."""
    entry: list[_Field] = []
    for field in _fields(source):
        entry.append(field)
        if not field.name:
            target.write(_shown(entry))
            entry = []
    if entry:  # the file ends inside it: a line that is cut stays one
        shown = _shown(entry)
        target.write(shown if entry[-1].ended else shown.removesuffix(b"\n"))


def _fields(source: BinaryIO) -> Iterator[_Field]:
    """The fields in order; one without a name ends an entry."""
    while line := bounded_line(source):
        name, equals, value = line.rstrip(b"\n").partition(b"=")
        if equals or not name:
            yield _field(name, value, line)
            continue
        head = source.read(_SIZE_BYTES)
        size = struct.unpack("<Q", head)[0] if len(head) == _SIZE_BYTES else 0
        if size > _MAX_FIELD_BYTES:
            yield _field(name, head, line + head + bounded_line(source))
            continue
        value = source.read(size)
        rest = bounded_line(source)
        yield _field(name, value, line + head + value + rest)


def _field(name: bytes, value: bytes, raw: bytes) -> _Field:
    """A field as it stands in the file."""
    ended = raw.endswith(b"\n")
    return _Field(name, value, raw.count(b"\n") + (not ended), ended)


def _shown(entry: list[_Field]) -> bytes:
    """The lines of an entry: those of its message at their place, the others without text."""
    values = {field.name: field.value for field in reversed(entry) if field.ended}  # half a pid is none
    head = f"{_time(values)} {_text(values.get(b'_HOSTNAME', b'-'))} ".encode()
    other = head + f"{_FIELD}:\n".encode()
    writer = head + f"{_writer(values)}: ".encode()
    lines: list[bytes] = []
    for field in entry:
        said = field.value.split(b"\n") if field.name == b"MESSAGE" else []
        lines += [other] * (field.lines - len(said))
        lines += [writer + line + b"\n" for line in said]
    return b"".join(lines)


def _time(values: dict[bytes, bytes]) -> str:
    told = values.get(b"__REALTIME_TIMESTAMP", b"")
    micros = natural(told.decode("ascii", "replace"), _LATEST_MICROS) or 0
    return f"{_EPOCH + timedelta(microseconds=micros):%Y-%m-%dT%H:%M:%S.%f}+00:00"


def _writer(values: dict[bytes, bytes]) -> str:
    """``python3[4711]``, ``kernel``."""
    names = (values[name] for name in (b"CONTAINER_NAME", b"SYSLOG_IDENTIFIER", b"_COMM") if name in values)
    name = _text(next(names, b"unknown"))
    pid = _text(values.get(b"_PID", b""))
    if pid:
        return f"{name}[{pid}]"
    return name if name == "kernel" else f"{name}[0]"


def _text(value: bytes) -> str:
    return re.sub(r"[^A-Za-z0-9_@./()\-]", "_", value.decode("utf-8", "replace"))

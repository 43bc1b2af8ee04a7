"""Where bytes come from: paths, standard input, compressed files. Gives a file that can be scanned.

A compressed or piped input is spooled to a temporary file, so that every later stage can both scan it
with Polars and read single lines by offset. The compression is told by magic bytes, never by the name
(formats.md 7.9: rotated files have any ending).
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import msgspec
import zstandard

from analyzer.errors import InputError
from analyzer.scratch import scratch_folder

STDIN = "-"
SNIFF_BYTES = 65_536  # enough to tell text from binary and to see the envelope of a log
_CHUNK_BYTES = 1 << 20
_ZSTD_BYTES = 1 << 10  # compressed; four bytes of it can hold 128 KB, and all of a piece comes at once
BINARY_SHARE = 0.10  # control bytes: logs stay below; ELF and pickles are above
NUL_SHARE = 0.30  # sparse logs have runs of NUL, tensors and UTF-16 without mark are NUL for a third or more
UNDECODABLE_SHARE = 0.30
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"), (b"BZh", "bzip2"))
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TEXT_CONTROLS = frozenset(b"\t\n\r\x0b\x0c\x08\x1b\x07\x00")
_ODD = bytes(byte for byte in range(32) if byte not in _TEXT_CONTROLS)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One input made scannable.

    ``path`` holds plain bytes (the original, or a spooled copy); ``name`` is what the user gave;
    ``size_bytes`` is the size of the original (null for standard input); ``plain_bytes`` that of ``path``.
    """

    index: int
    name: str
    path: Path
    size_bytes: int | None
    plain_bytes: int
    compression: str | None
    sample: bytes
    notes: tuple[str, ...] = ()


class BinaryFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A binary file that can be shown as a log. ``render`` gives its bytes, and a note about it."""

    magic: bytes
    render: Callable[[Path], tuple[bytes, str]]


@contextlib.contextmanager
def open_sources(names: list[str], formats: Sequence[BinaryFormat] = ()) -> Iterator[list[Source]]:
    """Open all inputs; temporary copies live as long as the context.

    Args:
        names: Paths, ``-`` for standard input.
        formats: Binary files that are read too.

    Raises:
        InputError: An input is missing, a directory, empty, unreadable, broken or not text.
    """
    with scratch_folder() as spool:
        yield [_open(index, name, spool, formats) for index, name in enumerate(names)]


def _open(index: int, name: str, spool: Path, formats: Sequence[BinaryFormat]) -> Source:
    if name == STDIN:
        return _spooled(index, "<stdin>", sys.stdin.buffer, spool, size=None)
    path, name = Path(name), _shown(name)
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise InputError(f"{name}: is a directory; give the log files in it")
        with path.open("rb") as file:
            if not stat.S_ISREG(info.st_mode):  # a named pipe or a device: read it once
                return _spooled(index, name, file, spool, size=None)
            magic = file.read(8)
            file.seek(0)
            if _compression(magic):
                return _spooled(index, name, file, spool, size=info.st_size)
            sample = file.read(SNIFF_BYTES)
    except FileNotFoundError as error:
        raise InputError(f"{name}: no such file") from error
    except PermissionError as error:
        raise InputError(f"{name}: permission denied") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error
    for one in formats:
        if sample.startswith(one.magic):
            return _rendered(index, path, spool, one)
    _check_text(name, sample)
    return Source(
        index=index,
        name=name,
        path=_scannable(path, index, spool),
        size_bytes=info.st_size,
        plain_bytes=info.st_size,
        compression=None,
        sample=sample,
    )


def _scannable(path: Path, index: int, spool: Path) -> Path:
    """A path that Polars takes: it wants UTF-8, so another name is reached through a link."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        link = spool / f"{index}.link.log"
        link.symlink_to(path.absolute())
        return link
    return path


def _shown(name: str) -> str:
    r"""A file name as text that can be written anywhere: bytes that are no UTF-8 as ``\xff``."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")


def _rendered(index: int, path: Path, spool: Path, kind: BinaryFormat) -> Source:
    """The log that a binary file holds."""
    data, note = kind.render(path)
    target = spool / f"{index}.log"
    target.write_bytes(data)
    return Source(
        index=index,
        name=_shown(str(path)),
        path=target,
        size_bytes=path.stat().st_size,
        plain_bytes=len(data),
        compression=None,
        sample=data[:SNIFF_BYTES],
        notes=(note,),
    )


def _compression(magic: bytes) -> str | None:
    return next((kind for prefix, kind in _MAGIC if magic.startswith(prefix)), None)


def _spooled(index: int, name: str, file: IO[bytes], spool: Path, *, size: int | None) -> Source:
    """Copy ``file`` (decompressed if need be) below ``spool``. A cut archive gives what it holds."""
    reader = io.BufferedReader(cast(io.RawIOBase, file)) if not hasattr(file, "peek") else file
    kind = _compression(cast(io.BufferedReader, reader).peek(8)[:8])
    target = spool / f"{index}.log"
    notes: list[str] = []
    with target.open("wb") as out:
        try:
            for chunk in _plain_chunks(kind, reader):
                _write(out, chunk, name)
        except (EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError, OSError) as error:
            if kind is None or not out.tell():
                raise InputError(f"{name}: cannot be read as {kind or 'a file'}: {error}") from error
            notes.append(f"the {kind} stream ends early or is broken ({error}); what could be read is used")
    with target.open("rb") as plain_file:
        sample = plain_file.read(SNIFF_BYTES)
    _check_text(name, sample)
    return Source(
        index=index,
        name=name,
        path=target,
        size_bytes=size,
        plain_bytes=target.stat().st_size,
        compression=kind,
        sample=sample,
        notes=tuple(notes),
    )


def _write(out: BinaryIO, chunk: bytes, name: str) -> None:
    try:
        out.write(chunk)
    except OSError as error:
        where = Path(out.name).parent.parent
        raise InputError(f"{name}: no room for a plain copy in {where} (set TMPDIR): {error}") from error


_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "xz": lzma.LZMAFile,
    "bzip2": bz2.BZ2File,
}


def _plain_chunks(kind: str | None, file: IO[bytes]) -> Iterator[bytes]:
    """The plain bytes of a stream; an error comes only after all that stands before it."""
    if kind == "zstd":
        yield from _zstd_chunks(file)
        return
    with _OPENERS.get(kind or "", contextlib.nullcontext)(file) as plain:
        while chunk := plain.read1(_CHUNK_BYTES):  # read() would drop what it has when the end is missing
            yield chunk


def _zstd_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """All frames of a zstd stream. Its own stream reader takes a missing end for the end."""
    decoder = None
    while data := file.read(_ZSTD_BYTES):
        while data:
            decoder = decoder or zstandard.ZstdDecompressor().decompressobj()
            yield decoder.decompress(data)
            data = decoder.unused_data if decoder.eof else b""
            decoder = None if decoder.eof else decoder
    if decoder is not None:
        raise EOFError("the end of the last frame is missing")


def _check_text(name: str, sample: bytes) -> None:
    """Refuse an empty or a binary input with a message that says what to give instead."""
    if not sample:
        raise InputError(
            f"{name}: is empty; was the log written to another file, or the stream not redirected?"
        )
    if sample.startswith(_BOMS):
        return
    if _is_binary(sample):
        raise InputError(
            f"{name}: is a binary file, not a log; a GPU core dump is read with"
            ' cuda-gdb -batch -ex "target cudacore FILE" -ex "info cuda kernels" > gpu.txt'
        )


def _is_binary(sample: bytes) -> bool:
    """Random bytes (weights, archives) have 9 % control bytes, foreign encodings of text have none."""
    size = len(sample)
    odd = size - len(sample.translate(None, _ODD))
    undecodable = sample.decode("utf-8", errors="replace").count("\N{REPLACEMENT CHARACTER}")
    foreign = undecodable > UNDECODABLE_SHARE * size and odd > 0.02 * size
    return odd > BINARY_SHARE * size or sample.count(0) > NUL_SHARE * size or foreign

"""A source as a file that Polars can scan: journals as text, container lines joined, bounded lines, UTF-8.

Where the bytes are that already, the file itself is scanned; otherwise a copy with the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec
import polars as pl

from analyzer.errors import InputError
from analyzer.ingest import journal, normalise
from analyzer.ingest import lines as scanning
from analyzer.ingest.long_lines import LineCutter, Target, shortened
from analyzer.ingest.source import Source

_CRI_PART = re.compile(rb"(?m)^\S+ (?:stdout|stderr) [FP] ")
_CRI_PARTIALS = (" stdout P ", " stderr P ")
_DOCKER_JSON = re.compile(rb'(?m)^\{ ?"log": ?"')
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def scannable(source: Source, spool: Path) -> tuple[Path, list[str]]:
    """The file to scan: partial container lines joined, UTF-16 decoded (formats.md 6), journals read.

    Args:
        source: The input.
        spool: Folder for copies.

    Returns:
        The path, and what was changed on the way.
    """
    if journal.is_export(source.sample):  # its binary fields are counted in bytes: nothing can be cut before
        return _copied(source.path, spool / f"{source.index}.journal.log", journal.rewrite_export)
    path, notes = source.path, list[str]()
    if not source.sample.startswith(_UTF16):
        target = spool / f"{source.index}.shortened.log"
        if note := shortened(path, target, source.plain_bytes):
            path, notes = target, [note]
    if journal.is_json(source.sample):
        path, told = _copied(path, spool / f"{source.index}.journal.log", journal.rewrite_json)
        return path, notes + told
    path, told = _joined(source, path, spool)
    return path, notes + told


def _joined(source: Source, path: Path, spool: Path) -> tuple[Path, list[str]]:
    cri = bool(_CRI_PART.search(source.sample)) and _has_cri_parts(path)
    docker = bool(_DOCKER_JSON.search(source.sample))
    if not (cri or docker or source.sample.startswith(_UTF16)):
        return path, []
    return _normalised(path, spool / f"{source.index}.joined.log", cri=cri, docker=docker)


def rewritten(path: Path, target: Path) -> tuple[Path, list[str]]:
    """A copy in valid UTF-8, and what was changed."""
    return _normalised(path, target, cri=False, docker=False)


def _normalised(path: Path, target: Path, *, cri: bool, docker: bool) -> tuple[Path, list[str]]:
    told: list[str] = []

    def rewrite(file: BinaryIO, out: Target) -> None:
        done = normalise.rewrite(file, out, join_cri=cri, join_docker=docker)
        if done.joined_lines:
            told.append(f"{done.joined_lines} partial container lines joined")
        if done.replaced:
            told.append(f"{done.replaced} undecodable bytes replaced by U+FFFD")

    path, cut = _copied(path, target, rewrite)
    return path, told + cut


def _copied(
    path: Path, target: Path, rewrite: Callable[[BinaryIO, Target], object]
) -> tuple[Path, list[str]]:
    """What ``rewrite`` makes of a file, no line of it too long: decoding and joining make lines longer."""
    with path.open("rb") as file, target.open("wb") as out:
        cutter = LineCutter(out)
        rewrite(file, cutter)
        cutter.close()
    note = cutter.note()
    return target, [note] if note else []


def _has_cri_parts(path: Path) -> bool:
    try:
        return scanning.lines_with(path, _CRI_PARTIALS).height > 0
    except pl.exceptions.ComputeError:  # not valid UTF-8: it has to be rewritten anyway
        return True


def snapshot(source: Source, size_bytes: int, spool: Path) -> Source:
    """A copy of what was there at first: the file grew while it was read.

    Raises:
        InputError: It did not grow, it became shorter.
    """
    if size_bytes < source.plain_bytes:
        raise InputError(
            f"{source.name}: was emptied or shortened while it was read; after log rotation give the old file"
        )
    target = spool / f"{source.index}.snapshot.log"
    with source.path.open("rb") as file, target.open("wb") as out:
        left = source.plain_bytes
        while left and (chunk := file.read(min(left, 1 << 20))):
            out.write(chunk)
            left -= len(chunk)
    note = f"the file grew while it was read; its first {source.plain_bytes} bytes are analysed"
    return msgspec.structs.replace(
        source, path=target, plain_bytes=target.stat().st_size, notes=(*source.notes, note)
    )

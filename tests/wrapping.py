"""The same log as other programs hand it on: container runtimes, launchers, archives, shared pipes."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import zstandard

Lines = Sequence[str]


def _stamp(number: int) -> str:
    seconds, milliseconds = divmod(number, 1000)
    return f"2026-11-30T23:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{milliseconds:03d}000000Z"


def cri(lines: Lines) -> list[str]:
    """Kubernetes, as ``/var/log/pods`` has it."""
    return [f"{_stamp(number)} stdout F {line}" for number, line in enumerate(lines)]


def docker(lines: Lines) -> list[str]:
    """Docker's json-file."""
    records = (
        {"log": f"{line}\n", "stream": "stdout", "time": _stamp(number)} for number, line in enumerate(lines)
    )
    return [json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in records]


def coloured_rank(lines: Lines) -> list[str]:
    """The tag of torchrun, coloured as a whole line and as a tag, by turns."""
    forms = ("\x1b[36m[rank3]: {}\x1b[0m", "\x1b[36m[rank3]:\x1b[0m {}")
    return [forms[number % 2].format(line) for number, line in enumerate(lines)]


def woven(one: Lines, other: Lines, *, tags: tuple[str, str] = ("", "")) -> Iterator[str]:
    """Two writers line by line, each with its tag, to the end of the longer one."""
    for pair in zip_longest(one, other):
        yield from (tag + line for tag, line in zip(tags, pair, strict=True) if line is not None)


ENVELOPES: dict[str, Callable[[Lines], list[str]]] = {
    "cri": cri,
    "coloured rank": coloured_rank,
    "docker json-file": docker,
}
ARCHIVES: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}

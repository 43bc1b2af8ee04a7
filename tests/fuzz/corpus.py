"""What is mutated: every shipped sample, in pieces small enough to be read thousands of times."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from random import Random

import msgspec

from analyzer.grammar import data_path
from analyzer.ingest.source import open_sources
from analyzer.witness import witnesses

PIECE_BYTES = 2_000  # a mutation is seldom about more than the lines around it, and time goes with the size
SMALL_BYTES = 700  # cut at every byte
_NOT_LOGS = {".json", ".md", ".mlir", ".mojo", ".ttir", ".ll"}
_TOKEN = re.compile(rb"[A-Za-z_]+|[0-9]+|[^\sA-Za-z_0-9]+|\s+")


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """Plain bytes of the samples by path, and the gate literals of all witnesses."""

    samples: tuple[bytes, ...]
    literals: tuple[bytes, ...]

    def sample(self, random: Random) -> bytes:
        """A sample, or some neighbouring lines of a large one; each sample as often as any other."""
        return piece(random.choice(self.samples), random)

    def small(self) -> tuple[bytes, ...]:
        """Samples that are small enough to be cut at every byte."""
        return tuple(one for one in self.samples if len(one) <= SMALL_BYTES)

    def cuts(self) -> int:
        """In how many places the small samples can be cut."""
        return sum(map(len, self.small()))


@cache
def corpus() -> Corpus:
    """All samples that ship with the package, decompressed."""
    folder = data_path("sample_logs")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in _NOT_LOGS)
    gates = sorted({gate for witness in witnesses() for gate in witness.gates})
    return Corpus(
        samples=tuple(_plain(path) for path in paths), literals=tuple(one.encode() for one in gates)
    )


def _plain(path: Path) -> bytes:
    with open_sources([str(path)]) as (source,):
        return source.path.read_bytes()


def piece(data: bytes, random: Random) -> bytes:
    """Whole lines of about ``PIECE_BYTES``: every other time the last ones, as the fault stands there."""
    if len(data) <= PIECE_BYTES:
        return data
    start = len(data) - PIECE_BYTES if random.random() < 0.5 else random.randrange(len(data) - PIECE_BYTES)
    start = data.find(b"\n", start, start + PIECE_BYTES // 2) + 1 or start
    end = data.rfind(b"\n", start, start + PIECE_BYTES) + 1 or start + PIECE_BYTES
    return data[start:end]


def tokens(data: bytes) -> list[bytes]:
    """Words, numbers, punctuation and blanks; joined they are ``data``."""
    return _TOKEN.findall(data)

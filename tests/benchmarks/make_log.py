"""Builds an op log of a wanted size out of the real steps of the shipped ``paged_async`` sample.

The head and the failing tail stay as they are; the sound steps between are repeated, ids, step numbers and
clock going on: ``python -m tests.benchmarks.make_log --size-mb 1000 big.log``.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from analyzer.grammar import data_path
from analyzer.schema import Value

SAMPLE = "max_ops/paged_async/input.log.gz"
BYTES_PER_MB = 1_000_000
STEP_BEGIN = b"DEBUG::: mgp.buffer.plan stats:"  # the graph executor prints it once an execution
STEP_END = re.compile(rb"^\d\d:\d\d:\d\d\.\d{3} INFO: step \d+ logits .*\n", re.MULTILINE)
OP_ID = re.compile(rb"(?<=\[id=)\d+(?=\])")


class Parts(Value):
    """The sample cut up: text before the first step, sound steps without their last line, failing step."""

    head: bytes
    steps: tuple[bytes, ...]
    tail: bytes


class Template(Value):
    """One text split at its op ids; ``offsets`` are the ids counted from the first of its step."""

    pieces: tuple[bytes, ...]
    offsets: tuple[int, ...]

    def fill(self, first_id: int) -> bytes:
        """The text with ids that begin at ``first_id``."""
        filled = [self.pieces[0]]
        for piece, offset in zip(self.pieces[1:], self.offsets, strict=True):
            filled += (b"%d" % (first_id + offset), piece)
        return b"".join(filled)

    @property
    def ids(self) -> int:
        """How many ids one step takes."""
        return max(self.offsets) + 1


def split_sample(text: bytes) -> Parts:
    """Cut the sample at its step lines."""
    begin = text.index(STEP_BEGIN)
    head, steps = text[:begin], []
    for end in STEP_END.finditer(text):
        steps.append(text[begin : end.start()])
        begin = end.end()
    return Parts(head=head, steps=tuple(steps), tail=text[begin:])


def template(step: bytes) -> Template:
    """Split a step at its ids."""
    ids = [int(number) for number in OP_ID.findall(step)]
    return Template(pieces=tuple(OP_ID.split(step)), offsets=tuple(number - min(ids) for number in ids))


def step_line(step: int) -> bytes:
    """The line that the serving program prints when it has read a step back, one millisecond a step."""
    seconds, millis = divmod(step, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours % 24:02}:{minutes:02}:{seconds:02}.{millis:03}"
    return f"{clock} INFO: step {step} logits 64.0000\n".encode()


def log_chunks(parts: Parts, size_bytes: int) -> Iterator[bytes]:
    """The log in pieces: ``size_bytes`` or up to one step more, and every real step at least once."""
    sound = [template(step) for step in parts.steps]
    tail = template(parts.tail)
    yield parts.head
    written, step, next_id = len(parts.head) + len(parts.tail), 0, 0
    while written < size_bytes or step < len(sound):
        chosen = sound[step % len(sound)]
        chunk = chosen.fill(next_id) + step_line(step)
        written, step, next_id = written + len(chunk), step + 1, next_id + chosen.ids
        yield chunk
    yield tail.fill(next_id)


def make_log(path: Path, size_bytes: int) -> int:
    """Write a log of about ``size_bytes`` to ``path``; gives its real size."""
    parts = split_sample(gzip.decompress((data_path("sample_logs") / SAMPLE).read_bytes()))
    with path.open("wb", buffering=16 * BYTES_PER_MB) as out:
        for chunk in log_chunks(parts, size_bytes):
            out.write(chunk)
        return out.tell()


def main() -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size-mb", type=int, default=1000)
    parser.add_argument("path", type=Path)
    given = parser.parse_args()
    size = make_log(given.path, given.size_mb * BYTES_PER_MB)
    print(f"{given.path}: {size / BYTES_PER_MB:.1f} MB")


if __name__ == "__main__":
    main()

"""Real child processes for the recorder's tests, and what a recording of one gives."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import zstandard

from analyzer.record.stamp import split_streams
from analyzer.record.trailer import PREFIX, Trailer, parse_trailer

ROOT = Path(__file__).parents[2]
RECORD = """
import json, sys
from pathlib import Path
from analyzer.record.wrapper import RecordOptions, record
options = json.loads(sys.argv[1])
options["output"] = Path(options["output"])
sys.exit(record(sys.argv[2:], RecordOptions(**options)))
"""
OWN = f" F {PREFIX}".encode()


class Recorded(msgspec.Struct, kw_only=True):
    """A finished recording: what came through, and the lines of the log with their line ends."""

    code: int
    stdout: bytes
    stderr: bytes
    lines: list[bytes]

    @property
    def trailer(self) -> Trailer:
        """The recorder's own lines."""
        return parse_trailer(line.split(b" ", 3)[3].decode(errors="replace") for line in self.lines)

    @property
    def payload(self) -> list[bytes]:
        """Lines without the recorder's own."""
        return [line for line in self.lines if OWN not in line[:70]]

    def stream(self, name: str) -> bytes:
        """What the log holds of a stream, byte for byte."""
        found = split_streams(self.payload).get(name, b"")
        return found.removesuffix(b"\n") if name in self.trailer.unterminated else found

    def stamps(self, name: str) -> list[bytes]:
        """The stamps of a stream, in file order."""
        return [line.split(b" ", 1)[0] for line in self.lines if line.split(b" ", 2)[1] == name.encode()]


def start(
    log: Path, command: list[str], env: Mapping[str, str] | None = None, **options: object
) -> subprocess.Popen[bytes]:
    """Start a recorder as a process of its own."""
    asked = {"output": str(log), "quiet": True, **options}
    return subprocess.Popen(
        [sys.executable, "-c", RECORD, msgspec.json.encode(asked).decode(), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
    )


def kill_orphan(log: Path) -> None:
    """End the command of a recorder that was killed."""
    texts = (line.split(b" ", 3)[3].decode(errors="replace") for line in read_lines(log))
    pid = parse_trailer(texts).pid
    assert pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def run(log: Path, command: list[str], env: Mapping[str, str] | None = None, **options: object) -> Recorded:
    """Record a command to its end."""
    with start(log, command, env, **options) as child:
        out, err = child.communicate(timeout=300)
    return Recorded(code=child.returncode, stdout=out, stderr=err, lines=read_lines(log))


def read_lines(log: Path) -> list[bytes]:
    """Lines of a plain or zstd log; of a cut zstd stream what can be read."""
    data = log.read_bytes()
    if log.suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data.splitlines(keepends=True) if b"\r" not in data else _lines(data)


def _lines(data: bytes) -> list[bytes]:
    """Split at line feeds only: the text may hold carriage returns."""
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def python(code: str) -> list[str]:
    """A command that runs Python code."""
    return [sys.executable, "-c", code]

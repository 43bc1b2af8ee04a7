"""An analysis in a child of its own, with its time and the most memory that it held."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from analyzer.schema import Value

# What the kernel tells of an ended child includes the process that it was forked from: it looks itself.
_PROGRAM = """
import atexit, pathlib, sys
peak = pathlib.Path(sys.argv.pop())
def tell():
    peak.write_text(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
atexit.register(tell)
from analyzer.cli import main
main()
"""
_KIB = 1024


class Measured(Value):
    """What one child gave and took."""

    result: dict[str, Any]
    wall_s: float
    memory_bytes: int


def analysed(path: Path, folder: Path) -> Measured:
    """Analyse a log and print what it took (``pytest -s`` shows it).

    Raises:
        subprocess.CalledProcessError: It did not exit with 0.
    """
    peak = folder / "peak.txt"
    began = time.monotonic()
    command = [sys.executable, "-c", _PROGRAM, str(path), "--format", "json", str(peak)]
    done = subprocess.run(command, capture_output=True, check=True)
    wall_s = time.monotonic() - began
    memory_bytes = int(peak.read_text(encoding="ascii")) * _KIB
    print(f"{path.name}: {wall_s:.1f} s, {memory_bytes / 1e6:.0f} MB")  # noqa: T201 - for who measures
    return Measured(result=msgspec.json.decode(done.stdout), wall_s=wall_s, memory_bytes=memory_bytes)

"""What recording costs a program that writes 100 MB/s: ``record -o LOG -- cmd`` beside ``cmd > file``.

``python -m tests.benchmarks.record_overhead`` runs both in turns and prints the ratio of the seconds that the
writer itself took from its first to its last byte (a server's start-up is not its speed). ``--rate-mb-s 0``
writes as fast as the writer can, which is no longer what a server does: then the ratio is that of two copies
to one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
# Lines of 90 bytes in writes of 64 KB, each at its time.
WRITER = """
import os, sys, time
size, rate, report = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
line = b"INFO 11-21 10:22:33 [engine.py:%06d] 12 requests running, throughput 1234.5 tokens/s  ok\\n"
block = b"".join(line % n for n in range(728))
begin = time.perf_counter()
sent = 0
while sent < size:
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
    sent += len(block)
    wait = sent / rate - (time.perf_counter() - begin) if rate else 0
    if wait > 0:
        time.sleep(wait)
with open(report, "w") as file:
    file.write(str(time.perf_counter() - begin))
"""
RECORD = """
import sys
from pathlib import Path
from analyzer.record.wrapper import RecordOptions, record
sys.exit(record(sys.argv[2:], RecordOptions(output=Path(sys.argv[1]), quiet=True)))
"""


def seconds(folder: Path, size: int, rate: float, log: Path | None) -> tuple[float, float]:
    """Seconds of the writer, and processor seconds of all processes but it; null log = ``cmd > file``."""
    report = folder / "seconds"
    writer = [sys.executable, "-c", WRITER, str(size), str(rate), str(report)]
    command = writer if log is None else [sys.executable, "-c", RECORD, str(log), *writer]
    target = folder / "plain.log" if log is None else Path(os.devnull)
    with target.open("wb") as out:
        before = os.times()
        subprocess.run(command, stdout=out, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return float(report.read_text()), spent


def measure(size: int, rate: float, rounds: int, suffix: str) -> tuple[list[float], list[float], float]:
    """Seconds of each round without and with the recorder, and processor seconds that a recording adds."""
    plain, recorded, added = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(rounds):
            wall, spent = seconds(folder, size, rate, None)
            wall_recorded, spent_recorded = seconds(folder, size, rate, folder / f"serve.log{suffix}")
            plain.append(wall)
            recorded.append(wall_recorded)
            added.append(spent_recorded - spent)
            for file in folder.glob("*.log*"):
                file.unlink()
    return plain, recorded, median(added)


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size-mb", type=int, default=500)
    parser.add_argument("--rate-mb-s", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--zst", action="store_true", help="compress the log")
    options = parser.parse_args()
    size = options.size_mb * 1_000_000
    suffix = ".zst" if options.zst else ""
    plain, recorded, added = measure(size, options.rate_mb_s * 1e6, options.rounds, suffix)
    print(f"{options.size_mb} MB at {options.rate_mb_s or 'any'} MB/s, {options.rounds} rounds, log{suffix}")
    print("plain    " + " ".join(f"{one:.2f}" for one in plain) + " s")
    print("recorded " + " ".join(f"{one:.2f}" for one in recorded) + " s")
    print(f"recorder's own processor time {added:.2f} s")
    print(f"ratio {median(recorded) / median(plain):.4f} (of the best {min(recorded) / min(plain):.4f})")


if __name__ == "__main__":
    main()

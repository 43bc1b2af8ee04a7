"""How long the analysis takes beside ``grep -c``: ``python -m tests.benchmarks.bench --size-mb 1000``.

Both read the same file from the page cache, in turns, best of three. The analysis is a child process of its
own (interpreter start included), so its peak memory is what the kernel says of that child. Modules are
compiled once, as an installed package's are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from analyzer.schema import Value
from tests.benchmarks.make_log import BYTES_PER_MB, make_log

ROUNDS = 3
MAX_RATIO = 12.0
MAX_MEMORY_BYTES = 2 * 1024**3
KIB = 1024  # ru_maxrss on Linux
ROOT = Path(__file__).parents[2]


class Run(Value):
    """One child: wall time and the most memory that it held."""

    wall_s: float
    memory_bytes: int


class Outcome(Value):
    """Best of all rounds."""

    size_bytes: int
    grep: Run
    analysis: Run

    @property
    def ratio(self) -> float:
        """Times as slow as ``grep``."""
        return self.analysis.wall_s / self.grep.wall_s


def run_child(command: Sequence[str], output: Path) -> Run:
    """Run a command with its standard output in ``output``.

    Raises:
        subprocess.CalledProcessError: It did not exit with 0.
    """
    began = time.perf_counter()
    with output.open("wb") as out:
        child = subprocess.Popen(command, stdout=out, cwd=ROOT, env=_as_installed())
        _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise subprocess.CalledProcessError(child.returncode, command)
    return Run(wall_s=wall_s, memory_bytes=usage.ru_maxrss * KIB)


def _as_installed() -> dict[str, str]:
    """Our environment, save that Python keeps compiled modules: pip compiles what it installs."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def best(runs: Sequence[Run]) -> Run:
    """Shortest time; the largest memory, which has no luck in it."""
    return Run(
        wall_s=min(run.wall_s for run in runs),
        memory_bytes=max(run.memory_bytes for run in runs),
    )


def measure(log: Path, rounds: int = ROUNDS) -> Outcome:
    """Time both programs on ``log`` in turns; the analysis is left in ``<log>.json``."""
    grep = ["grep", "-c", r"^\[OP\] LAUNCH", str(log)]
    analysis = [sys.executable, "-m", "analyzer", str(log), "--format", "json"]
    counted, result = log.with_suffix(".count"), log.with_suffix(".json")
    run_child(grep, counted)  # the file into the page cache
    pairs = [(run_child(grep, counted), run_child(analysis, result)) for _ in range(rounds)]
    return Outcome(
        size_bytes=log.stat().st_size,
        grep=best([first for first, _ in pairs]),
        analysis=best([second for _, second in pairs]),
    )


def render(outcome: Outcome) -> str:
    """The table."""
    rows = [("grep -c", outcome.grep, 1.0), ("trace-analyze", outcome.analysis, outcome.ratio)]
    lines = [f"{outcome.size_bytes / BYTES_PER_MB:.0f} MB, best of {ROUNDS}, file in the page cache", ""]
    lines.append(f"{'program':<14} {'seconds':>8} {'GB/s':>6} {'ratio':>6} {'peak MB':>8}")
    for name, run, ratio in rows:
        speed = outcome.size_bytes / run.wall_s / 1e9
        peak = run.memory_bytes / BYTES_PER_MB
        lines.append(f"{name:<14} {run.wall_s:>8.2f} {speed:>6.2f} {ratio:>6.1f} {peak:>8.0f}")
    return "\n".join(lines)


def problems(outcome: Outcome) -> list[str]:
    """What is above its limit."""
    found = []
    if outcome.ratio > MAX_RATIO:
        found.append(f"ratio {outcome.ratio:.1f} is above {MAX_RATIO:.0f}")
    if outcome.analysis.memory_bytes > MAX_MEMORY_BYTES:
        found.append(f"peak memory {outcome.analysis.memory_bytes} bytes is above {MAX_MEMORY_BYTES}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Make a log, measure, print; with ``--check`` 1 = a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench", description=__doc__)
    parser.add_argument("--size-mb", type=int, default=1000)
    parser.add_argument("--check", action="store_true", help="exit 1 above the limits")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="trace-analyze-bench-") as folder:
        log = Path(folder) / "big.log"
        make_log(log, given.size_mb * BYTES_PER_MB)
        outcome = measure(log)
    print(render(outcome))
    found = problems(outcome) if given.check else []
    for problem in found:
        print(problem, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())

"""What the PyTorch hook costs outside the window: ``python -m tests.benchmarks.hook_overhead``.

One process times the same model step without and with the hook, in turns, so that the ratio is of one run.
The hook only counts there (no window is set); the target is under 15 % on a step of 12 layers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from analyzer.replay.hooks.config import VARIABLE, HookConfig
from analyzer.replay.switches import HOOKS
from analyzer.schema import Value

MAX_OVERHEAD = 0.15
ROOT = Path(__file__).parents[2]


class Measured(Value):
    """Median processor seconds of one step, and the ops in it."""

    plain_s: float
    hooked_s: float
    ops: int

    @property
    def overhead(self) -> float:
        """Share of a plain step that the hook adds."""
        return self.hooked_s / self.plain_s - 1.0


def measure(rounds: int) -> Measured:
    """Run the measuring child.

    Args:
        rounds: Steps of each sort.

    Raises:
        subprocess.CalledProcessError: The child failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        hook = HookConfig(journal=str(Path(folder) / "journal"))
        path = os.pathsep.join([str(HOOKS), str(ROOT)])
        env = {**os.environ, "PYTHONPATH": path, VARIABLE: hook.dump()}
        program = Path(__file__).with_name("hook_overhead_step.py")
        command = [sys.executable, str(program), str(rounds)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return msgspec.json.decode(done.stdout, type=Measured)


def main() -> int:
    """Print the ratio; 1 = over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    measured = measure(parser.parse_args().rounds)
    print(
        f"{measured.ops} ops a step: plain {measured.plain_s * 1e3:.2f} ms, "
        f"with hook {measured.hooked_s * 1e3:.2f} ms, overhead {measured.overhead:.1%} "
        f"({(measured.hooked_s - measured.plain_s) / measured.ops * 1e6:.1f} us an op)"
    )
    return int(measured.overhead > MAX_OVERHEAD)


if __name__ == "__main__":
    sys.exit(main())

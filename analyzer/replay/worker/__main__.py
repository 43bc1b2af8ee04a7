"""``python -m analyzer.replay.worker JOB.json``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from analyzer.replay.worker.job import load_job
from analyzer.replay.worker.run import Worker


def main() -> int:
    """Run a job. Exit code 0: all ops ran or were skipped, 1: one failed, 2: the call makes no sense."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m analyzer.replay.worker JOB.json\n")
        return 2
    worker = Worker(load_job(Path(sys.argv[1])))
    code = worker.run()
    if code and worker.on_device():
        # The context is lost: giving memory back in it aborts the process a second time, and the exit code
        # would no longer be ours (observed.md 22).
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


sys.exit(main())

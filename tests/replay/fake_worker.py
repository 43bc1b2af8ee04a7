"""Stands for the worker of an op replay: a real process with a real journal, its ops are words.

The ``call`` of an op says what becomes of it: ``sound``; ``bad`` fails unless its inputs are made valid;
``broken`` always fails; ``other`` in another way; ``needs:3`` fails only if op 3 ran before; ``once`` fails
in the first process only; ``coredump`` fails only where the attempt asks for a core dump; ``dies``,
``hangs``; ``inputs`` and ``call`` are mistakes of the worker; ``skipped``; ``device`` a CUDA error;
``opens`` opens a device and is sound, timed by the host's clock. Ops of MAX find no MAX.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from analyzer.replay.hooks.journal import JournalWriter

ERROR = IndexError("index out of range in self")
DEVICE_ERROR = RuntimeError("CUDA error: an illegal memory access was encountered")


def fails(call: str, number: int, done: list[int], job: dict[str, Any]) -> Exception | None:
    if call == "bad":
        return None if number in job["valid"] else ERROR
    if call == "broken":
        return ERROR
    if call == "other":
        return RuntimeError("CUDA error: invalid argument")
    if call == "device":
        return DEVICE_ERROR
    if call == "coredump" and "CUDA_ENABLE_COREDUMP_ON_EXCEPTION" in os.environ:
        return DEVICE_ERROR
    if call == "once":
        mark = Path(job["journal"]).parent / "once"
        if not mark.exists():
            mark.touch()
            return ERROR
    if call.startswith("needs:"):
        wanted = {int(one) for one in call.partition(":")[2].split("+")}
        return ERROR if wanted <= set(done) and number not in job["valid"] else None
    return None


def main() -> int:
    job = json.loads(Path(sys.argv[1]).read_text())
    ops = json.loads(Path(job["plan"]).read_text())["ops"]
    journal = JournalWriter(job["journal"])
    journal.write("hello")
    done: list[int] = []
    for number in job["ops"]:
        op = ops[number]
        call = op["call"]
        if op["executor"] == "max":
            journal.write("skipped", number=number, why="max cannot be imported: no module")
            continue
        if call == "skipped":
            journal.write("skipped", number=number, why="torch cannot be imported: no module")
            continue
        if call == "inputs":
            journal.failed(number, op["name"], ValueError("no such file"), why="inputs")
            return 1
        journal.op(number, op["name"])
        if call == "dies":
            os.kill(os.getpid(), 11)
        if call == "hangs":
            time.sleep(600)
        if call == "call":
            journal.failed(number, op["name"], TypeError("no overload"), why="call")
            return 1
        error = fails(call, number, done, job)
        if error is not None:
            journal.failed(number, op["name"], error)
            return 1
        journal.done(number, duration_ns=1000 * (number + 1), on_device=call == "coredump")
        done.append(number)
    journal.write("bye", on_device=any(ops[number]["call"] == "opens" for number in done))
    return 0


sys.exit(main())

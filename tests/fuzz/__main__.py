"""``python -m tests.fuzz --count 200000``: many inputs on all cores, and a table of what became of them.

Inputs have numbers: ``--first N`` goes on where an earlier run ended, ``--input N FILE`` writes one of them.
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # a process a core; read when Polars is imported

BATCH = 250  # inputs of one task
SLOWEST = 10
STAGES = ("crash", "accounting", "report")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A failing input."""

    number: int
    stage: str
    where: str
    text: str


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the inputs ``first`` to ``last``."""

    first: int
    last: int
    refused: int
    found: tuple[Found, ...]
    slowest: tuple[tuple[float, int, int], ...]


def run_batch(first: int, last: int) -> Batch:
    """Check the inputs with these numbers."""
    from tests.fuzz.checks import check
    from tests.fuzz.corpus import corpus
    from tests.fuzz.mutations import fuzz_input

    found: list[Found] = []
    times: list[tuple[float, int, int]] = []
    refused = 0
    with TemporaryDirectory(prefix="fuzz-") as folder:
        for number in range(first, last + 1):
            data = fuzz_input(number, corpus())
            outcome = check(data, Path(folder))
            refused += outcome.refused
            times.append((outcome.seconds, number, len(data)))
            if (bad := outcome.failure) is not None:
                found.append(Found(number=number, stage=bad.stage, where=bad.where, text=bad.text))
    return Batch(
        first=first,
        last=last,
        refused=refused,
        found=tuple(found),
        slowest=tuple(heapq.nlargest(SLOWEST, times)),
    )


def batches(first: int, count: int, processes: int) -> Iterator[Batch]:
    """The batches in order, few at a time ahead, so that an interrupt knows what is done.

    Raises:
        BrokenProcessPool: A process died (a crash of a library).
    """
    starts = list(range(first, first + count, BATCH))
    # A child is replaced now and then: Polars keeps each category it has seen.
    with ProcessPoolExecutor(processes, max_tasks_per_child=8) as pool:
        running: list[Future[Batch]] = []
        for start in starts:
            running.append(pool.submit(run_batch, start, min(start + BATCH, first + count) - 1))
            if len(running) >= processes * 2:
                yield running.pop(0).result()
        for future in running:
            yield future.result()


def table(done: list[Batch], seconds: float) -> str:
    """Inputs, failures by kind with the first input of each, and the slowest inputs."""
    found = [one for batch in done for one in batch.found]
    lines = [
        f"inputs              {sum(batch.last - batch.first + 1 for batch in done)}",
        f"refused as no text  {sum(batch.refused for batch in done)}",
        *(f"{name:<20}{sum(one.stage == stage for one in found)}" for stage, name in _names()),
        f"seconds             {seconds:.0f}",
        "",
        "slowest inputs: seconds, number, bytes",
        *(f"  {took:6.2f}  {number}  {size}" for took, number, size in _slowest(done)),
    ]
    kinds = dict.fromkeys((one.stage, one.where) for one in found)
    for stage, where in kinds:
        same = [one for one in found if (one.stage, one.where) == (stage, where)]
        lines.append(f"{stage}: {where}: {len(same)} inputs, first {same[0].number}: {same[0].text}")
    return "\n".join(lines)


def _names() -> list[tuple[str, str]]:
    return list(zip(STAGES, ("crashes", "accounting errors", "report errors"), strict=True))


def _slowest(done: list[Batch]) -> list[tuple[float, int, int]]:
    return heapq.nlargest(SLOWEST, (one for batch in done for one in batch.slowest))


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 = some input failed, 130 = interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--input", nargs=2, metavar=("NUMBER", "FILE"))
    given = parser.parse_args(arguments)
    if given.input:
        from tests.fuzz.corpus import corpus
        from tests.fuzz.mutations import fuzz_input

        Path(given.input[1]).write_bytes(fuzz_input(int(given.input[0]), corpus()))
        return 0
    return _run(given.first, given.count, given.processes)


def _run(first: int, count: int, processes: int) -> int:
    done: list[Batch] = []
    began = time.monotonic()
    stopped = 0
    try:
        for batch in batches(first, count, processes):
            done.append(batch)
            for one in batch.found:
                print(f"{one.stage}: input {one.number}: {one.where}: {one.text}", flush=True)
    except BrokenProcessPool:
        print("a process died: a library crashed, or the memory was used up", file=sys.stderr)
        stopped = 1
    except KeyboardInterrupt:
        stopped = 130
    print(table(done, time.monotonic() - began))
    if stopped:
        print(f"go on with --first {done[-1].last + 1 if done else first}", file=sys.stderr)
    return stopped or int(any(batch.found for batch in done))


if __name__ == "__main__":
    sys.exit(main())

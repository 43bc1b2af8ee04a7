"""Plans and jobs run by real workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analyzer.replay.journal import Entry, Journal, read_journal
from analyzer.replay.plan import Plan, PlanArgument, PlanOp, PlanTensor, write_plan
from analyzer.replay.worker.job import Job, dump_job, load_job
from analyzer.replay.worker.run import Worker
from analyzer.schema import Value

ROOT = Path(__file__).parents[3]


class Ran(Value):
    """What a worker left."""

    code: int
    journal: Journal
    output: str

    def events(self) -> list[tuple[str, int | None]]:
        """Events of ops with their numbers, in order."""
        wanted = {"op", "done", "failed", "skipped", "bye"}
        return [(one.event, one.number) for one in self.journal.entries if one.event in wanted]

    def first(self, event: Any) -> Entry:
        """The first entry of an event."""
        found = next(self.journal.of(event), None)
        assert found is not None, f"no {event} in {self.events()}: {self.output}"
        return found


def write_job(folder: Path, ops: Sequence[PlanOp], **settings: Any) -> Path:
    """Write a plan and a job (``chosen`` ops, all by default)."""
    plan, job, journal = folder / "plan.json", folder / "job.json", folder / "journal"
    journal.unlink(missing_ok=True)
    write_plan(Plan(ops=tuple(ops)), plan)
    chosen = tuple(settings.pop("chosen", [op.number for op in ops]))
    dump_job(Job(**{"plan": str(plan), "journal": str(journal), "ops": chosen, **settings}), job)
    return job


def run_here(folder: Path, ops: Sequence[PlanOp], **settings: Any) -> Ran:
    """Run a job in this process: as good as a child for ops that raise on the host, and a second faster."""
    job = load_job(write_job(folder, ops, **settings))
    return Ran(code=Worker(job).run(), journal=read_journal(folder / "journal"), output="")


def run_worker(folder: Path, ops: Sequence[PlanOp], **settings: Any) -> Ran:
    """Run a job in a child of its own to its end."""
    job = write_job(folder, ops, **settings)
    done = subprocess.run(
        [sys.executable, "-m", "analyzer.replay.worker", str(job)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=600,
    )
    return Ran(
        code=done.returncode, journal=read_journal(folder / "journal"), output=done.stdout + done.stderr
    )


def tensor(*shape: int, dtype: str = "float32", device: str = "cpu", **facts: Any) -> PlanTensor:
    """A tensor of the plan."""
    return PlanTensor(shape=shape, dtype=dtype, device=device, **facts)


def indices(*values: int, dtype: str = "int64", **facts: Any) -> PlanTensor:
    """Recorded indices."""
    return tensor(len(values), dtype=dtype, fidelity="recorded", values=tuple(values), **facts)


def op(call: str, number: int = 0, executor: Any = "torch", **facts: Any) -> PlanOp:
    """An op whose arguments are given as ``arguments={"name": tensor or text}``."""
    given = facts.pop("arguments", {})
    return PlanOp(
        number=number,
        name=facts.pop("name", call),
        executor=executor,
        call=call,
        arguments=tuple(_argument(name, value) for name, value in given.items()),
        **facts,
    )


def _argument(name: str, value: Any) -> PlanArgument:
    if isinstance(value, PlanTensor):
        return PlanArgument(name=name, tensor=value)
    if isinstance(value, tuple):
        return PlanArgument(name=name, tensors=value)
    if isinstance(value, str):
        return PlanArgument(name=name, text=value)
    return PlanArgument(name=name, value=value)


def lines_of(journal: Path) -> list[dict[str, Any]]:
    """The journal as it was written."""
    return [json.loads(line) for line in journal.read_text().splitlines()]

"""Executes the ops of a job one by one: inputs, journal, launch, synchronise, journal."""

from __future__ import annotations

import statistics
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from analyzer.replay.executors import find_executor
from analyzer.replay.executors.call import Bound, CannotRunError, Executor, Framework, Prepared
from analyzer.replay.hooks.journal import BEGUN, FINISHED, JournalWriter, open_progress
from analyzer.replay.worker.blame import is_call_error
from analyzer.replay.worker.inputs import build_values
from analyzer.replay.worker.job import Job
from analyzer.replay.worker.plan_file import Argument, Op, Tensor, read_ops

FAILED = 1  # exit code: an op failed, or its inputs could not be made
PASSED = 0


class Context(NamedTuple):
    """What executors are given beside op and arguments."""

    job: Job
    framework: Any


class _Stage:
    """What is being done before the launch: ``inputs``, or the ``call`` (a graph that does not build)."""

    def __init__(self, name: str) -> None:
        self.name = name


class Worker:
    """One job. Results are kept until the last op of the job that takes them has run."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._ops = read_ops(Path(job.plan))
        self._journal = JournalWriter(job.journal)
        self._progress = open_progress(job.journal)
        self._frameworks: dict[str, Framework] = {}
        self._results: dict[tuple[int, int], Any] = {}
        self._last_taker = self._last_takers()
        self._taken_last: dict[int, list[tuple[int, int]]] = {}
        for result, number in self._last_taker.items():
            self._taken_last.setdefault(number, []).append(result)
        self._notes: set[str] = set()

    def run(self) -> int:
        """Execute all ops, or up to the first that fails. Gives the exit code."""
        self._journal.write("hello", python=sys.version.split()[0], command=sys.argv)
        for number in self._job.ops:
            if not self._run_one(self._ops[number]):
                return FAILED
            self._forget(number)
        self._journal.write("bye", on_device=self.on_device())
        return PASSED

    def on_device(self) -> bool:
        """Whether an accelerator is in use."""
        return any(one.on_device() for one in self._frameworks.values())

    def _run_one(self, op: Op) -> bool:
        """Whether the job can go on."""
        stage = _Stage("inputs")
        try:
            executor, prepared, inputs = self._prepare(op, stage)
        except CannotRunError as error:
            self._journal.write("skipped", number=op.number, name=op.name, why=str(error))
            return True
        except Exception as error:  # noqa: BLE001  (whatever the frameworks raise while nothing is launched)
            return self._failed(op, error, stage.name)
        return self._launch(op, self._frameworks[executor.framework], prepared, inputs)

    def _prepare(self, op: Op, stage: _Stage) -> tuple[Executor, Prepared, list[dict[str, object]]]:
        """All that is no launch of the op; the device has finished it when this returns."""
        if op.why_not is not None:
            raise CannotRunError(op.why_not)
        executor = find_executor(op)
        framework = self._framework(executor.framework)
        bound = [self._bind(op, place, one, framework) for place, one in enumerate(op.arguments)]
        framework.synchronize()
        stage.name = "call"
        prepared = executor.prepare(op, bound, Context(self._job, framework))
        stage.name = "inputs"
        inputs = framework.describe([one for each in bound for one in each.tensors()], with_values=True)
        framework.synchronize()
        return executor, prepared, inputs

    def _launch(
        self, op: Op, framework: Framework, prepared: Prepared, inputs: list[dict[str, object]]
    ) -> bool:
        source = op.source
        place = [source["file"], source["line"], source["function"], source.get("text")] if source else None
        facts: dict[str, Any] = {"kind": "op", "step": op.step, "place": place}
        self._progress[BEGUN] += 1
        self._journal.op(op.number, op.name, inputs=inputs, mutates=prepared.mutates, **facts)
        launched = False

        def call() -> Any:
            nonlocal launched
            launched = False
            result = prepared.call()
            launched = True
            return result

        try:
            runs = self._job.timing_runs if prepared.repeatable else 1
            times = []
            for _ in range(max(runs, 1)):
                result, time_ns, by_device = framework.timed(call, op.device)
                framework.synchronize()
                times.append(time_ns)
        except Exception as error:  # noqa: BLE001  (whatever the op raises is what is looked for)
            return self._failed(
                op, error, "call" if not launched and is_call_error(op, error) else None, **facts
            )
        outputs = framework.flatten(result)
        self._journal.done(
            op.number,
            name=op.name,
            outputs=framework.describe(outputs, with_values=False),
            duration_ns=round(statistics.median(times[1:] or times)),
            on_device=by_device,
        )
        self._progress[FINISHED] += 1
        results = {(op.number, place): one for place, one in enumerate(outputs)}
        self._results.update((each, one) for each, one in results.items() if each in self._last_taker)
        return True

    def _failed(self, op: Op, error: Exception, why: str | None, **facts: Any) -> bool:
        self._journal.failed(op.number, op.name, error, why=why, **facts)
        traceback.print_exception(type(error), error, error.__traceback__)
        return False

    def _framework(self, name: str) -> Framework:
        """Loaded when the first op needs it.

        Raises:
            CannotRunError: It is not installed in this interpreter.
        """
        if name not in self._frameworks:
            try:
                side = _load(name, self._job, self._note)
            except ImportError as error:
                raise CannotRunError(f"{name} cannot be imported: {error}") from error
            self._frameworks[name] = side
            self._journal.write(name)
        return self._frameworks[name]

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.add(text)
            self._journal.write("note", why=text)

    def _bind(self, op: Op, place: int, argument: Argument, framework: Framework) -> Bound:
        salt = f"{self._job.seed}/{op.number}/{place}"
        make = partial(self._make, op, framework)
        if argument.tensor is not None:
            return Bound(argument.name, make(salt, argument.tensor), is_tensor=True)
        if argument.tensors is not None:
            several = [
                None if one is None else make(f"{salt}/{each}", one)
                for each, one in enumerate(argument.tensors)
            ]
            return Bound(argument.name, several, is_tensor=True)
        return Bound(argument.name, argument.value, text=argument.text)

    def _make(self, op: Op, framework: Framework, salt: str, tensor: Tensor) -> Any:
        """The result of an earlier op of the job, else what the plan says."""
        valid = op.number in self._job.valid
        if tensor.from_op is not None:
            result = self._results.get((tensor.from_op, tensor.from_output))
            if result is not None and framework.fits(result, tensor):
                return framework.made_valid(result, tensor.extent) if valid else result
        return framework.make(
            tensor, build_values(tensor, valid=valid, salt=salt, folder=Path(self._job.plan).parent)
        )

    def _last_takers(self) -> dict[tuple[int, int], int]:
        """Each result that an op of the job takes, with the last such op."""
        return {
            (tensor.from_op, tensor.from_output): number
            for number in self._job.ops
            for argument in self._ops[number].arguments
            for tensor in argument.all_tensors()
            if tensor.from_op is not None
        }

    def _forget(self, number: int) -> None:
        """Let go of what no op after this one takes."""
        for place in self._taken_last.get(number, ()):
            self._results.pop(place, None)


def _load(name: str, job: Job, note: Callable[[str], None]) -> Framework:
    if name == "max":
        from analyzer.replay.worker.max_side import MaxSide

        return MaxSide(job.device, note)
    from analyzer.replay.worker.torch_side import TorchSide

    return TorchSide(job.device, job.seed, note)

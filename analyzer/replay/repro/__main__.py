"""``python -m analyzer.replay.repro JOB.json REPRO.py``: execute a job and write it as a program.

Runs in the interpreter that has torch or max (standard library and these only, Python 3.9 or newer). The
program is written before each launch, so that it is whole whatever the launch does to this process.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from analyzer.replay.executors.user_file import find_function
from analyzer.replay.repro.max_source import write_max_program
from analyzer.replay.repro.source import Program
from analyzer.replay.repro.tensors import Leaf
from analyzer.replay.worker.job import load_job
from analyzer.replay.worker.run import Worker


class _WritingWorker(Worker):
    """Executes a job as ever, and tells the program what is made and what is called."""

    def __init__(self, job: Any, path: Path, header: str) -> None:
        super().__init__(job)
        self._path, self._header = path, header
        self._own_job = job
        self._written: Program | None = None
        self._bounds: dict[int, list[Any]] = {}

    @property
    def _program(self) -> Program:
        """Made when the first tensor of torch is: an interpreter with MAX may have no torch."""
        if self._written is None:
            self._written = Program(self._path, self._header)
        return self._written

    def _bind(self, op: Any, place: int, argument: Any, framework: Any) -> Any:
        bound = super()._bind(op, place, argument, framework)
        self._bounds.setdefault(op.number, []).append(bound)
        return bound

    def _make(self, op: Any, framework: Any, salt: str, tensor: Any) -> Any:
        value = super()._make(op, framework, salt, tensor)
        if op.executor != "max":
            facts = Leaf(tensor.fidelity, salt, tensor.low, tensor.high, tensor.mean)
            self._program.takes(value, facts)
        return value

    def _launch(self, op: Any, framework: Any, prepared: Any, inputs: Any) -> bool:
        if op.executor == "max":
            extensions = self._own_job.custom_extensions
            write_max_program(self._path, self._header, op, self._bounds[op.number], extensions)
            return super()._launch(op, framework, prepared._replace(repeatable=False), inputs)
        self._program.begin(op)
        call = partial(self._call, op, prepared.call)
        return super()._launch(op, framework, prepared._replace(call=call, repeatable=False), inputs)

    def _call(self, op: Any, call: Any) -> Any:
        program = self._program
        if isinstance(call, partial) and hasattr(call.func, "_schema"):
            return program.run(call.func, call.args, call.keywords)
        if op.executor == "user" and isinstance(call, partial):
            own = find_function(self._own_job.user_ops, op.call, op.name)
            return program.run_user(call.func, call.args, call.keywords, own)
        with _recording(program):
            return call()


def _recording(program: Program) -> Any:
    """A dispatch mode that writes each call of a sequence."""
    from torch.utils._python_dispatch import TorchDispatchMode

    def dispatch(_mode: object, func: Any, _types: object, args: Any = (), kwargs: Any = None) -> Any:
        return program.run(func, args, kwargs or {})

    return type("CallWriter", (TorchDispatchMode,), {"__torch_dispatch__": dispatch})()


def main() -> int:
    """Exit code as the worker's: 1 = an op failed, and the program is written up to it."""
    job, path = load_job(Path(sys.argv[1])), Path(sys.argv[2])
    header = sys.argv[3]
    worker = _WritingWorker(job, path, header)
    code = worker.run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a lost context would end the process in another way (observed.md 22)


if __name__ == "__main__":
    main()

"""The standalone program of a confirmed op: written in a child, then run to see that it fails alike."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

from analyzer.errors import AnalyzerError
from analyzer.replay.memory import memory_limit
from analyzer.replay.ops.state import Search
from analyzer.replay.ops.verdict import Failing
from analyzer.replay.ops.words import FIDELITIES, FIDELITY_WORDS, inputs_told
from analyzer.replay.repro.literals import plain
from analyzer.replay.repro.place import place_program
from analyzer.replay.supervisor import ChildOutcome, run_child
from analyzer.replay.switches import switches, worker_environment
from analyzer.schema import Value

_WRITER = ("-m", "analyzer.replay.repro")


class Repro(Value):
    """The program (null = none was written); ``verified``: it was run and failed alike; ``text`` says so.

    ``interrupted``: Ctrl-C came while it was written or run.
    """

    path: Path | None
    verified: bool
    text: str
    interrupted: bool = False


def write_repro(search: Search, failing: Failing, path: Path) -> Repro:
    """Write the program and run it.

    Args:
        search: What was found; its smallest list is written.
        failing: The op that failed.
        path: Of the program. Inputs that are too large for it are put beside it. Both are made and run in
            the replay's own folder before anything is put there.
    """
    if failing.op.executor == "max" and not _is_one_custom_op(search, failing):
        told = "no program was written: of MAX, only a custom op that fails alone is written as one"
        return Repro(path=None, verified=False, text=told)
    path = path.absolute()
    folder = Path(tempfile.mkdtemp(prefix="repro-", dir=search.attempts.folder))
    made = folder / path.with_suffix(".py").name
    wrote = _write(search, failing, made)
    if not made.exists():
        told = f"no program was written: {_ending(wrote)}"
        return Repro(path=None, verified=False, text=told, interrupted=wrote.interrupted)
    ran = _run(search, [str(made)], "repro-run", with_package=False)
    try:
        place_program(made, path)
    except (OSError, AnalyzerError) as error:
        told = f"the program is {made}; it could not be put where it was asked for: {error}"
        return Repro(path=made, verified=False, text=told, interrupted=ran.interrupted)
    expected = failing.finding.error or ""
    if fails_alike(ran, wrote, expected):
        return Repro(path=path, verified=True, text=f"{path.name} was run by itself and fails alike")
    told = f"{path.name} was written, but run by itself it does not fail alike: {_ending(ran)}"
    return Repro(path=path, verified=False, text=told, interrupted=ran.interrupted)


def fails_alike(ran: ChildOutcome, wrote: ChildOutcome, expected: str) -> bool:
    """Whether a run of the program ended in the same class of error.

    Args:
        ran: The program by itself.
        wrote: The run that wrote it.
        expected: ``IndexError: index out of range in self``, or how the process died.
    """
    if ran.signal is not None:
        return ran.signal == wrote.signal
    if not ran.exit_code:
        return False
    kind = expected.partition(":")[0].strip()
    lines = ran.output.read_text("utf-8", "replace").splitlines()
    return any(line.partition(":")[0].strip().rpartition(".")[2] == kind for line in lines)


def _is_one_custom_op(search: Search, failing: Failing) -> bool:
    return failing.op.call.startswith("custom::") and len(attempts_ops(search, failing)) == 1


def _write(search: Search, failing: Failing, path: Path) -> ChildOutcome:
    attempts = search.attempts
    folder = attempts.folder
    trial = attempts.trials[failing.attempts[-1] - 1]
    job = attempts.write_job(folder / "repro-write", trial)
    return _run(
        search, [*_WRITER, str(job), str(path), _header(search, failing)], "repro-write", with_package=True
    )


def _run(search: Search, arguments: list[str], name: str, *, with_package: bool) -> ChildOutcome:
    attempts = search.attempts
    options = attempts.options
    if options.progress is not None:
        options.progress("the program that fails alike")
    set_here = switches("blocking", os.environ, attempts.folder)
    env = worker_environment(os.environ, set_here, attempts.imports if with_package else None)
    return run_child(
        [options.python, *arguments],
        env=env,
        deadline_s=options.deadline_s,
        journal=attempts.folder / f"{name}.journal",
        output=attempts.folder / f"{name}.log",
        grace_s=options.grace_s,
        memory_limit_bytes=memory_limit(options.memory_limit_bytes),
        cwd=attempts.folder,
    )


def _header(search: Search, failing: Failing) -> str:
    op, plan = failing.op, search.plan
    place = f" ({op.source.file}:{op.source.line})" if op.source else ""
    needs = "max" if op.executor == "max" else "torch"
    count = len(attempts_ops(search, failing))
    several = f"{count} ops of the suspicious window" if count > 1 else "one op of the suspicious window"
    lines = [
        f"{op.name}{place} fails: {failing.finding.error}",
        "",
        f"Written by trace-analyze from {Path(plan.log).name if plan.log else 'a plan'}: {several},",
        f"the smallest list that failed in its replay. It needs nothing but {needs}.",
        *_inputs(search, failing),
        f"Expected end: {failing.finding.error}",
    ]
    return "\n".join(map(plain, lines))


def _inputs(search: Search, failing: Failing) -> list[str]:
    """Which inputs of the program are recorded and which are made."""
    numbers = attempts_ops(search, failing)
    told = [f"I{inputs_told(failing.op, numbers)[1:]}."]
    before = [search.plan.ops[number] for number in numbers if number != failing.op.number]
    found = {
        one.fidelity
        for op in before
        for one in op.tensors()
        if one.from_op is None or one.from_op not in numbers
    }
    words = [FIDELITY_WORDS[one] for one in FIDELITIES if one in found]
    return [*told, *([f"Inputs of the ops before it: {', '.join(words)}."] if words else [])]


def attempts_ops(search: Search, failing: Failing) -> tuple[int, ...]:
    """The ops of the attempt that is written."""
    return search.attempts.trials[failing.attempts[-1] - 1].ops


def _ending(child: ChildOutcome) -> str:
    if child.start_error is not None:
        return child.start_error
    if child.killed_for is not None:
        return f"ended for its {child.killed_for}"
    if child.signal is not None:
        return f"died of {signal.Signals(child.signal).name}"
    lines = [line for line in child.output.read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit code {child.exit_code}"

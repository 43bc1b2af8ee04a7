"""Program replay: the user's own program again, with blocking launches, until its failure has a place."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from analyzer.errors import ReplaySetupError
from analyzer.replay.attempts import NO_WINDOW, Attempts, ReplayOptions, with_limits
from analyzer.replay.compare import compare
from analyzer.replay.hooks.config import FOREVER, HookConfig
from analyzer.replay.observe import Finding, Position
from analyzer.replay.report import ReplayReport, Rung
from analyzer.replay.switches import framework_of
from analyzer.replay.verdict import REPEATS, best_group, control_of, decide
from analyzer.schema import FaultKind, Result

_OPS_BEFORE, _OPS_AFTER = 500, 100  # a window around an op number: a step's worth of ops before it
_SANITIZER = "compute-sanitizer"
_DEVICE_FILES = ("/dev/nvidiactl", "/dev/kfd")  # seen without initialising anything
_FAILING = frozenset({"failed", "hang", "out_of_memory"})


def replay_program(log: Result, command: Sequence[str], options: ReplayOptions) -> ReplayReport:
    """Run the program again until there is a verdict.

    Blocking launches first, twice; a failure is looked at closely the second time. The control is the same
    op, sound earlier in one of these runs; where none shows that, one more run that ends just before the op.
    If blocking does not reproduce it: without the caching allocator, then asynchronously with a core dump,
    then under compute-sanitizer. Ctrl-C ends the replay with what was found.

    Args:
        log: Analysis of the log: which framework, which step, who is suspected.
        command: Program and arguments as given after ``--``.
        options: See ``ReplayOptions``.

    Raises:
        ReplaySetupError: There is no command.
    """
    if not command:
        raise ReplaySetupError("nothing to run: give the program after --, as in: -- python serve.py")
    attempts = Attempts(command, options)
    skipped, cut_short = _run_until_interrupted(attempts, log)
    decision = decide(attempts.records, log)
    analysis, kind = _last_failing(attempts)
    return ReplayReport(
        verdict=decision.verdict,
        statement=with_limits(decision.statement, attempts.limits_told),
        rules_out=decision.rules_out,
        attempts=tuple(attempts.records),
        op=decision.op,
        producer=decision.producer,
        control=decision.control,
        comparison=compare(log, analysis, decision.op, kind),
        skipped=tuple(skipped),
        interrupted=cut_short,
        folder=str(options.folder),
    )


def _run_until_interrupted(attempts: Attempts, log: Result) -> tuple[list[str], bool]:
    """Rungs left out, and whether Ctrl-C ended it: in a child, or between two."""
    try:
        return _run_all(attempts, log), attempts.interrupted
    except KeyboardInterrupt:
        return [], True


def _run_all(attempts: Attempts, log: Result) -> list[str]:
    """Run what is needed; gives the rungs that were left out and why."""
    window = _known_window(attempts.options, log)
    if framework_of(log) == "max" and attempts.options.locate:
        located = attempts.run("locate", HookConfig(sync_calls=True))
        if located.outcome in {"setup_failed", "interrupted"}:
            return []
        if located.position is not None and located.outcome in _FAILING:
            window = _around(located.position)
    first = attempts.run("blocking", window)
    if first.outcome in {"setup_failed", "interrupted"} or _is_placed_hang(first):
        return []
    if first.outcome in _FAILING:
        _repeat(attempts, "blocking", first)
        return []
    attempts.run("blocking", window)
    second = attempts.findings[-1]
    if second.outcome in _FAILING:
        _repeat(attempts, "blocking", second)
        return []
    return _climb(attempts) if attempts.options.ladder and not attempts.interrupted else []


def _known_window(options: ReplayOptions, log: Result) -> HookConfig:
    """The steps that the caller asks for, else those of the log's window and one more on each side."""
    if options.steps is not None:
        return HookConfig(steps=options.steps, stop_after_step=options.steps[1])
    steps = log.window.steps if log.window else []
    if not steps or min(steps) < 0:
        return NO_WINDOW
    first, last = max(0, min(steps) - 1), max(steps) + 1
    return HookConfig(steps=(first, last), stop_after_step=last)


def _around(position: Position | None) -> HookConfig:
    """The window for a closer look: the failing step and the one before it (for a sound run of the op)."""
    if position is not None and position.step is not None:
        return HookConfig(steps=(max(0, position.step - 1), position.step), stop_after_step=position.step)
    if position is not None and position.number is not None:
        return HookConfig(ops=(max(0, position.number - _OPS_BEFORE), position.number + _OPS_AFTER))
    return HookConfig(ops=(0, FOREVER))


def _is_placed_hang(finding: Finding) -> bool:
    """A hang costs the whole deadline; once the op is known a second one would tell nothing new."""
    return finding.outcome == "hang" and finding.op is not None and finding.op.exact


def _repeat(attempts: Attempts, rung: Rung, first: Finding, prefix: Sequence[str] = ()) -> None:
    """Fail again at the same op, looked at closely; a third time if the two differ; then the control."""
    window = _around(first.position)
    for _ in range(REPEATS):
        again = attempts.run(rung, window, prefix=prefix)
        if attempts.interrupted or "hang" in {first.outcome, again.outcome}:  # each costs the whole deadline
            return
        if len(best_group(attempts.records)) >= REPEATS:
            break
    _control(attempts, window)


def _control(attempts: Attempts, window: HookConfig) -> None:
    """The same run, ended just before the op: run only if nothing else shows that the rest is sound."""
    group = best_group(attempts.records)
    if len(group) < REPEATS or group[0].outcome != "failed" or control_of(group, attempts.records):
        return
    position = attempts.findings[group[-1].number - 1].position
    if position is None:
        return
    if position.in_call:
        attempts.run("control", HookConfig(stop_before_step=position.step))
    else:
        attempts.run("control", window._replace(stop_after_step=None, stop_before_op=position.number))


def _climb(attempts: Attempts) -> list[str]:
    """The ladder when blocking does not reproduce (design.md 5)."""
    if attempts.findings[-1].used_device is False or not has_device():
        return ["uncached, coredump, sanitizer: the program used no device"]
    ladder: tuple[Rung, ...] = ("uncached", "coredump")
    if any(_try_rung(attempts, rung, ()) for rung in ladder):
        return []
    if shutil.which(_SANITIZER) is None:
        return [f"sanitizer: {_SANITIZER} is not on PATH"]
    _try_rung(attempts, "sanitizer", [_SANITIZER])
    return []


def _try_rung(attempts: Attempts, rung: Rung, prefix: Sequence[str]) -> bool:
    """One rung; a failure is repeated. Whether the ladder ends here."""
    finding = attempts.run(rung, prefix=prefix)
    if finding.outcome in _FAILING:
        _repeat(attempts, rung, finding, prefix)
        return True
    return attempts.interrupted


def has_device() -> bool:
    """Whether an accelerator's driver is there; nothing is initialised."""
    return any(Path(file).exists() for file in _DEVICE_FILES)


def _last_failing(attempts: Attempts) -> tuple[Result | None, FaultKind | None]:
    """Analysis and fault kind of the last attempt that failed."""
    for record, analysis in zip(reversed(attempts.records), reversed(attempts.analyses), strict=True):
        if record.outcome in _FAILING:
            return analysis, record.kind
    return None, None

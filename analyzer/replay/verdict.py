"""From attempts to a verdict, and what that rules out (design.md 5). Pure: no child is run here."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.replay.compare import accused, is_suspect
from analyzer.replay.report import BlamedOp, ReplayAttempt, VerdictName
from analyzer.replay.switches import framework_of
from analyzer.schema import Result, Value

REPEATS = 2  # attempts that must fail at the same op (design.md 5)
_NEVER_PROOF = frozenset({"locate", "control"})
_CHECK = "check that the command is the one of the log, with its arguments and its requests"
_RACE = "it does not show any op innocent: blocking launches hide races, and inputs may differ"


class Decision(Value):
    """The verdict with its reasons; see ``ReplayReport`` for the fields."""

    verdict: VerdictName | None
    statement: str
    rules_out: tuple[str, ...] = ()
    op: BlamedOp | None = None
    producer: BlamedOp | None = None
    control: str | None = None


def decide(attempts: Sequence[ReplayAttempt], log: Result) -> Decision:
    """Judge all attempts of a program replay.

    Args:
        attempts: In the order they ran.
        log: Analysis of the log, for what was suspected.
    """
    tried = [one for one in attempts if one.rung not in _NEVER_PROOF and one.outcome != "interrupted"]
    if not tried:
        return _nothing_tried(attempts)
    group = best_group(tried)
    if group and len(group) >= REPEATS and group[0].outcome == "failed":
        return _repeated(group, attempts, log)
    if all(one.outcome == "setup_failed" for one in tried):
        return _setup_failed(tried[0].error)
    for outcome, verdict in (("out_of_memory", _out_of_memory), ("hang", _hang)):
        if not any(one.outcome == "failed" for one in tried) and any(one.outcome == outcome for one in tried):
            return verdict([one for one in attempts if one.outcome == outcome], _counted(attempts))
    if any(one.outcome == "failed" for one in tried):
        return _not_located(tried, attempts)
    return _not_reproduced(tried, attempts, log)


def _counted(attempts: Sequence[ReplayAttempt]) -> int:
    """How many attempts a failure could show itself in, those included that prove no place."""
    return sum(one.rung != "control" and one.outcome != "interrupted" for one in attempts)


def best_group(tried: Sequence[ReplayAttempt]) -> list[ReplayAttempt]:
    """The largest set of attempts that failed at the same exactly known op; the first one among equals."""
    groups: list[list[ReplayAttempt]] = []
    for one in tried:
        if one.op is None or not one.op.exact or one.op.kind == "python":
            continue
        for group in groups:
            first = group[0].op
            if first is not None and first.is_same(one.op) and group[0].outcome == one.outcome:
                group.append(one)
                break
        else:
            groups.append([one])
    return max(groups, key=len, default=[])


def control_of(group: Sequence[ReplayAttempt], attempts: Sequence[ReplayAttempt]) -> str | None:
    """What passed beside the failing attempts of a group; null = nothing did yet."""
    sound = next((one for one in group if one.sound_before), None)
    if sound is not None:
        return f"the same op was sound earlier in attempt {sound.number}"
    for one in attempts:
        if one.rung == "control" and one.stopped and one.outcome == "passed":
            return f"attempt {one.number}, stopped just before the op, was sound"
        if one.rung not in _NEVER_PROOF and one.outcome == "passed" and one.rung != group[0].rung:
            return f"attempt {one.number} ({one.rung}) ran through"
    return None


def _repeated(group: Sequence[ReplayAttempt], attempts: Sequence[ReplayAttempt], log: Result) -> Decision:
    op = group[-1].op
    assert op is not None
    failed_control = next(
        (o for o in attempts if o.rung == "control" and o.outcome in {"failed", "hang"}), None
    )
    if failed_control is not None:
        return _setup_failed(
            f"the control, attempt {failed_control.number}, fails too: {failed_control.error}"
        )
    control = control_of(group, attempts)
    text = f"{op.text()} failed in {numbers_of(group)}"
    if control is None:
        statement = f"{text}, but no control passed: whether anything else passes here is not known"
        return Decision(verdict="not_replayable", statement=statement, op=op)
    suspects = accused(log)
    as_suspected = not suspects or any(is_suspect(op, one) for one in suspects)
    rules_out = ["a late report of an earlier launch: each one before it was synchronised and sound"]
    if any(one.rung == "coredump" for one in group):
        rules_out = ["another kernel: the device itself named this one"]
    rules_out.append(f"a machine on which everything fails: {control}")
    if not as_suspected:
        rules_out.append(f"{suspects[0].op.name} as the first op to fail in these attempts")
    return Decision(
        verdict="confirmed" if as_suspected else "confirmed_other_op",
        statement=f"{text}; {control}",
        rules_out=tuple(rules_out),
        op=op,
        producer=next((one.producer for one in reversed(group) if one.producer), None),
        control=control,
    )


def numbers_of(attempts: Sequence[ReplayAttempt]) -> str:
    """``attempt 2``, ``attempts 1, 2 and 4``."""
    numbers = [str(one.number) for one in attempts]
    if len(numbers) == 1:
        return f"attempt {numbers[0]}"
    return f"attempts {', '.join(numbers[:-1])} and {numbers[-1]}"


def _nothing_tried(attempts: Sequence[ReplayAttempt]) -> Decision:
    failed = next((one for one in attempts if one.outcome == "setup_failed"), None)
    if failed is not None:
        return _setup_failed(failed.error)
    return Decision(verdict=None, statement="interrupted before anything could be said")


def _setup_failed(error: str | None) -> Decision:
    return Decision(
        verdict="setup_failed",
        statement=f"the program did not get as far as the window: {error or 'no reason was printed'}",
        rules_out=(),
    )


def _out_of_memory(same: Sequence[ReplayAttempt], tried: int) -> Decision:
    op = next((one.op for one in reversed(same) if one.op is not None and one.op.exact), None)
    where = f" at {op.text()}" if op else ""
    text = f"memory ran out in {len(same)} of {tried} attempts{where}; who holds it is another question"
    return Decision(
        verdict="out_of_memory",
        statement=text,
        rules_out=("a fault inside the op that asked for the memory: it was refused before it ran",),
        op=op,
    )


def _hang(same: Sequence[ReplayAttempt], tried: int) -> Decision:
    op = next((one.op for one in reversed(same) if one.op is not None), None)
    where = f" in {op.text()}" if op else "; nothing told in which op"
    limit = f"{same[-1].duration_s:.0f} s"
    text = f"the program did not go on within {limit} in {len(same)} of {tried} attempts{where}"
    rules_out = ("the launches before it: each was synchronised",) if op and op.exact else ()
    return Decision(verdict="hang", statement=text, rules_out=rules_out, op=op)


def _not_located(tried: Sequence[ReplayAttempt], attempts: Sequence[ReplayAttempt]) -> Decision:
    """It fails, but not twice at one place that is known to be the place."""
    every = [one for one in attempts if one.outcome == "failed" and one.rung != "control"]
    failed = [one for one in tried if one.outcome == "failed"]
    last = failed[-1]
    where = last.op.text() if last.op else "no place that can be told"
    if len(failed) < len(tried):
        count = f"{len(every)} of {_counted(attempts)} attempts"
        text = f"failed in {count} ({where}): not often enough to confirm"
        return Decision(verdict="not_reproduced", statement=f"{text}; {_RACE}")
    statement = (
        f"the program fails each time, last at {where} ({last.error}), but not twice at one op; "
        "record the window (trace-analyze record) for an op replay"
    )
    return Decision(verdict="not_replayable", statement=statement)


def _not_reproduced(
    tried: Sequence[ReplayAttempt], attempts: Sequence[ReplayAttempt], log: Result
) -> Decision:
    sound = [one for one in attempts if one.rung != "control" and one.outcome in {"passed", "running"}]
    rungs = ", ".join(dict.fromkeys(one.rung for one in sound))
    statement = f"no failure in {len(sound)} attempts ({rungs}); {_RACE}"
    located = next((one for one in attempts if one.rung == "locate" and one.outcome == "failed"), None)
    if located is not None:
        where = f" in step {located.op.step}" if located.op and located.op.step is not None else ""
        statement = f"fails{where} without blocking launches, {statement}"
    if any(one.outcome == "running" for one in tried):
        statement += "; the program was still waiting for work when the time was over"
    missed = _missed_the_window(tried, log)
    if missed is not None:
        return Decision(verdict="not_reproduced", statement=f"{statement}; {missed}")
    ruled = f"a failure at each run: {len(sound)} runs on this machine with this command were sound"
    return Decision(verdict="not_reproduced", statement=statement, rules_out=(ruled,))


def _missed_the_window(tried: Sequence[ReplayAttempt], log: Result) -> str | None:
    """Why runs without a failure say nothing of the window, and what to check; null = they came that far.

    A program of a framework that the hook does not watch may well have run all of it; that is said too.
    """
    if any(one.reached for one in tried):
        return _ended_early(tried, log)
    if not any(one.ops for one in tried):
        seen = "none of them started a Python process that could be watched"
    elif framework_of(log) == "other" and all(one.reached is None for one in tried):
        seen = "none of them loaded torch or max, whose ops are watched"
    else:
        seen = "none of them was seen to run an op of the window"
    told = f"{seen}, so whether the program got that far is not known: {_CHECK}"
    return f"{told}, and that it starts the program itself, not a container or a service that runs it"


def _ended_early(tried: Sequence[ReplayAttempt], log: Result) -> str | None:
    """The steps that the program ran where they end before those of the log's failure.

    One step less may be a matter of counting: a log can begin behind the first step.
    """
    steps = (
        log.window.steps if log.window else [one.op.step for one in accused(log) if one.op.step is not None]
    )
    came = max((one.steps for one in tried if one.steps is not None), default=None)
    if not steps or came is None or came >= min(steps):
        return None
    told = (
        f"the program ran {came} step{'' if came == 1 else 's'}, the log failed in step {min(steps)} or later"
    )
    return f"{told}: {_CHECK}"

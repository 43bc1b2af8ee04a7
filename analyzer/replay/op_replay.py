"""Op replay: the ops of the suspicious window by themselves, in child processes, until there is a verdict."""

from __future__ import annotations

import shutil

import msgspec

from analyzer.replay.attempts import with_limits
from analyzer.replay.observe import root_fault
from analyzer.replay.ops.attempts import OpAttempts
from analyzer.replay.ops.fitting import is_other_failure, is_same_class
from analyzer.replay.ops.observe import FAILING, OpFinding
from analyzer.replay.ops.options import OpReplayOptions
from analyzer.replay.ops.replayed import replayed_ops
from analyzer.replay.ops.stand_ins import lacks_max, torch_for_max
from analyzer.replay.ops.state import Search
from analyzer.replay.ops.verdict import Failing, control_of, decide_ops, failing_group, not_replayable
from analyzer.replay.ops.words import least_true
from analyzer.replay.plan import Plan
from analyzer.replay.program import has_device
from analyzer.replay.report import Comparison, ReplayReport, Rung
from analyzer.replay.repro.write import Repro, write_repro
from analyzer.replay.shrink import shrink
from analyzer.replay.verdict import REPEATS, Decision
from analyzer.schema import Result

_SANITIZER = "compute-sanitizer"
_KEPT_FOR_CONTROLS = 3  # attempts that shrinking leaves over: two controls, and the written program
_OTHERS = 4  # ops that fail in another way than the log, before the first of them is looked at itself
_SECOND_SEED = 1  # a second sound run tries other made values


def replay_ops(log: Result, plan: Plan, options: OpReplayOptions) -> ReplayReport:
    """Execute the ops of a plan until there is a verdict.

    All ops that can run first, in launch order. An op that fails is tried alone with what makes its inputs,
    then with valid inputs or left out (the control), and shrunk. If nothing fails: again with other made
    values, then up the ladder where there is a device. Ctrl-C ends the replay with what was found.

    Args:
        log: Analysis of the log: what failed, who is suspected.
        plan: What to execute.
        options: See ``OpReplayOptions``.
    """
    if not plan.runnable():
        decision = not_replayable(plan)
        return ReplayReport(verdict=decision.verdict, statement=decision.statement, kind="ops")
    search = Search(log, OpAttempts(plan, options))
    skipped, cut_short = _run_until_interrupted(search)
    decision = decide_ops(search)
    repro = _repro(search, decision)
    cut_short = cut_short or (repro is not None and repro.interrupted)
    return _report(search, decision, repro, skipped, interrupted=cut_short)


def _run_until_interrupted(search: Search) -> tuple[list[str], bool]:
    """Rungs left out, and whether Ctrl-C ended it: in a child, or between two."""
    try:
        return _run_all(search), search.attempts.interrupted
    except KeyboardInterrupt:
        return [], True


def _run_all(search: Search) -> list[str]:
    """Run what is needed; gives the rungs that were left out and why."""
    for seed in (0, _SECOND_SEED):
        search.seed = seed
        finding = _window(search)
        if finding.outcome in {"setup_failed", "interrupted"}:
            return []
        if finding.outcome in FAILING:
            _confirm(search, finding)
            return []
        if search.is_over():
            return []
    return _climb(search) if search.attempts.options.ladder else []


def _window(search: Search) -> OpFinding:
    """The whole window, past ops that fail in another way than the log: they may hide the one that counts."""
    finding = search.window("blocking")
    if lacks_max(finding) and not search.is_over():
        search.attempts.replace_plan(torch_for_max(search.plan))
        search.left_out.clear()
        finding = search.window("blocking")
    others: list[int] = []
    first = finding
    while is_other_failure(finding, search.log) and len(others) < _OTHERS and not search.is_over():
        assert finding.number is not None
        others.append(finding.number)
        search.left_out[finding.number] = f"fails in another way than the log: {finding.error}"
        finding = search.window("blocking")
    if others and (finding.outcome not in FAILING or is_other_failure(finding, search.log)):
        for number in others:
            del search.left_out[number]
        return first
    return finding


def _confirm(search: Search, first: OpFinding, rung: Rung = "blocking", prefix: tuple[str, ...] = ()) -> None:
    """Fail again at the same op, alone if it does; then the control; then the smallest list that fails."""
    number = first.number
    if number is None:  # between two ops: once more, it may have a place then
        if not search.is_over():
            search.window(rung, prefix=prefix)
        return
    if first.outcome == "hang" or search.is_over():  # each hang costs the whole deadline
        return
    whole = tuple(one for one in search.active() if one <= number)

    def fails(numbers: tuple[int, ...]) -> bool | None:
        if search.is_over():
            return None
        smaller: Rung = "shrink" if rung == "blocking" and numbers != whole else rung
        finding = search.run(smaller, numbers, prefix=prefix)
        if finding.outcome == "interrupted":
            return None
        return finding.number == number and finding.outcome == first.outcome and search.is_evidence(finding)

    if first.outcome == "out_of_memory":
        fails(whole)
        return
    limit = max(0, search.attempts.left - _KEPT_FOR_CONTROLS)
    shrunk = shrink(whole, number, closed=search.closed, fails=fails, limit=limit)
    search.smallest = shrunk.smallest
    search.minimal = shrunk.minimal
    for _ in range(REPEATS):
        group = failing_group(search)
        if group is None or len(group.attempts) >= REPEATS or not fails(search.smallest):
            break
    _control(search)


def _control(search: Search) -> None:
    """The smallest list with valid inputs for the op; where that does not pass, the window without it."""
    group = failing_group(search)
    if group is None or len(group.attempts) < REPEATS or search.is_over():
        return
    number = group.op.number
    search.run("control", search.smallest or (number,), valid=(number,))
    passed = control_of(search, group)
    if passed is not None and passed.valid:
        return
    others = tuple(one for one in search.active() if one != number)
    for rest in (others, tuple(one for one in others if one < number)):
        if rest and not search.is_over() and search.window("control", rest).outcome == "passed":
            return


def _climb(search: Search) -> list[str]:
    """The ladder when blocking does not reproduce (design.md 5)."""
    used = any(one.used_device for one in search.attempts.findings)
    if not used or not has_device():
        return ["uncached, coredump, sanitizer: the ops used no device"]
    search.seed = 0
    ladder: tuple[Rung, ...] = ("uncached", "coredump")
    if any(_try_rung(search, rung, None, ()) for rung in ladder):
        return []
    tool = shutil.which(_SANITIZER)
    if tool is None:
        return [f"sanitizer: {_SANITIZER} is not on PATH"]
    _try_rung(search, "sanitizer", _suspects(search), (tool,))
    return []


def _try_rung(search: Search, rung: Rung, ops: tuple[int, ...] | None, prefix: tuple[str, ...]) -> bool:
    """One rung; a failure is confirmed. Whether the ladder ends here."""
    if search.is_over():
        return True
    finding = search.window(rung, ops, prefix)
    if finding.outcome in FAILING:
        _confirm(search, finding, rung, prefix)
        return True
    return search.is_over()


def _suspects(search: Search) -> tuple[int, ...] | None:
    """The suspects with what makes their inputs: the sanitizer is too slow for a whole window."""
    named = [number for number in search.active() if search.plan.ops[number].suspect is not None]
    return search.closed(named) if named else None


def _repro(search: Search, decision: Decision) -> Repro | None:
    path = search.attempts.options.repro
    if path is None or decision.verdict not in {"confirmed", "confirmed_other_op"}:
        return None
    group = failing_group(search)
    if group is None or search.attempts.interrupted:
        return None
    return write_repro(search, group, path)


def _report(
    search: Search, decision: Decision, repro: Repro | None, skipped: list[str], *, interrupted: bool
) -> ReplayReport:
    group = failing_group(search)
    ops = replayed_ops(search)
    ran = [one.fidelity for one in ops if one.outcome != "not_run"]
    confirmed = decision.verdict in {"confirmed", "confirmed_other_op"}
    options = search.attempts.options
    statement = decision.statement if repro is None else f"{decision.statement}; {repro.text}"
    return ReplayReport(
        verdict=decision.verdict,
        statement=with_limits(statement, search.attempts.limits_told),
        kind="ops",
        rules_out=decision.rules_out,
        attempts=tuple(search.attempts.records),
        op=decision.op,
        control=decision.control,
        comparison=_compare(search, group),
        skipped=tuple(skipped),
        interrupted=interrupted or search.attempts.interrupted,
        folder=str(search.attempts.folder),
        plan=str(options.plan_path or search.attempts.plan_path),
        ops=ops,
        fidelity=group.op.fidelity() if group and confirmed else least_true(ran),
        shrunk_to=search.smallest if confirmed else None,
        repro=str(repro.path) if repro is not None and repro.path is not None else None,
        repro_verified=repro.verified if repro is not None else None,
    )


def _compare(search: Search, group: Failing | None) -> Comparison:
    """Kind and op of the log beside those of the replay. Faces of one bug count as the same kind."""
    root = root_fault(search.log)
    suspects = [one for one in search.log.suspects if one.rank == search.log.conclusion.suspect]
    compared = Comparison(
        log_kind=root.kind if root else None,
        replay_kind=None,
        same_kind=None,
        log_op=suspects[0].op.name if suspects else None,
        replay_op=None,
        same_op=None,
    )
    if group is None:
        return compared
    return msgspec.structs.replace(
        compared,
        replay_kind=group.finding.kind,
        same_kind=is_same_class(root, group.finding) if root else None,
        replay_op=group.op.name,
        same_op=group.op.suspect == suspects[0].rank if suspects else None,
    )

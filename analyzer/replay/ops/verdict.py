"""From the attempts of an op replay to a verdict, and what that rules out (design.md 5). No child is run."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.replay.observe import root_fault
from analyzer.replay.ops.fitting import has_text_of, is_accused, is_index_error, misfit
from analyzer.replay.ops.observe import OpFinding
from analyzer.replay.ops.state import Search, numbers_by_reason
from analyzer.replay.ops.words import FIDELITY_TEXT, inputs_told, least_true
from analyzer.replay.plan import Plan, PlanOp
from analyzer.replay.report import VerdictName
from analyzer.replay.verdict import REPEATS, Decision
from analyzer.schema import Value

REASONS_SHOWN = 6
_RACE = (
    "it does not show any op innocent: an op by itself meets no race, and no memory that another one broke"
)


class Control(Value):
    """What passed beside the failing attempts. ``valid``: the op itself did, with valid indices."""

    text: str
    valid: bool


class Failing(Value):
    """The attempts (from 1) that failed at one op in the same way, the last of them judged."""

    op: PlanOp
    attempts: tuple[int, ...]
    finding: OpFinding


def failing_group(search: Search) -> Failing | None:
    """The largest set of attempts that failed at the same op; controls prove nothing."""
    groups: dict[tuple[int, str], list[int]] = {}
    attempts = search.attempts
    for place, (trial, finding) in enumerate(zip(attempts.trials, attempts.findings, strict=True)):
        if trial.rung != "control" and finding.number is not None and search.is_evidence(finding):
            groups.setdefault((finding.number, finding.outcome), []).append(place)
    if not groups:
        return None
    (number, _), places = max(groups.items(), key=lambda group: len(group[1]))
    return Failing(
        op=search.plan.ops[number],
        attempts=tuple(place + 1 for place in places),
        finding=attempts.findings[places[-1]],
    )


def control_of(search: Search, failing: Failing) -> Control | None:
    """The control that passed; null = none did yet. One with valid indices says most."""
    number = failing.op.number
    found: list[Control] = []
    attempts = search.attempts
    for place, (trial, finding) in enumerate(zip(attempts.trials, attempts.findings, strict=True), 1):
        if trial.rung == "control" and number in trial.valid and finding.is_sound(number):
            return Control(text=f"attempt {place}, the same op with valid indices, passed", valid=True)
        if trial.rung == "control" and number not in trial.ops and finding.outcome == "passed":
            found.append(Control(text=f"attempt {place}, the window without the op, passed", valid=False))
    sound = next((one for one in failing.attempts if attempts.records[one - 1].sound_before), None)
    if sound is not None:
        text = f"the same op with other inputs was sound earlier in attempt {sound}"
        found.append(Control(text=text, valid=True))
    return max(found, key=lambda one: one.valid, default=None)


def decide_ops(search: Search) -> Decision:
    """Judge all attempts of an op replay."""
    failing = failing_group(search)
    if failing is None:
        return _nothing_failed(search)
    if failing.finding.outcome == "hang":
        return _hang(search, failing)
    if failing.finding.outcome == "out_of_memory":
        return _out_of_memory(search, failing)
    count = len(failing.attempts)
    if count < REPEATS:
        tried = sum(trial.rung != "control" for trial in search.attempts.trials)
        text = f"{_text(failing.op)} failed in {count} of {tried} attempts: not often enough to confirm"
        told = "; ".join([text, *_of_device(search, failing), _RACE])
        return Decision(verdict=_or_cut_short(search, "not_reproduced"), statement=told)
    return _repeated(search, failing)


def not_replayable(plan: Plan, left_out: dict[int, str] | None = None) -> Decision:
    """No op can be executed: for each why, and what to record."""
    told = reasons(plan, left_out) or ["the log has no op that a window could be made of"]
    text = "; ".join(["no op of the window can be executed by itself", *told])
    return Decision(verdict="not_replayable", statement=f"{text}. {what_to_record()}")


def reasons(plan: Plan, left_out: dict[int, str] | None = None) -> list[str]:
    """Why ops cannot be executed, one sentence a reason."""
    known = {op.number: op.why_not for op in plan.ops if op.why_not is not None} | (left_out or {})
    told = numbers_by_reason(known, plan)
    more = [f"and {len(told) - REASONS_SHOWN} more reasons"] if len(told) > REASONS_SHOWN else []
    return [*told[:REASONS_SHOWN], *more]


def what_to_record() -> str:
    """What would make the window executable."""
    return (
        "Record a run with its inputs (trace-analyze record --for torch -o serve.log -- python serve.py), "
        "give the shapes of a MAX graph (--ir, from MODULAR_DEBUG=ir-output-dir=FOLDER) or dumped tensors "
        "(--replay-inputs), or run the program itself: --replay -- python serve.py"
    )


def _repeated(search: Search, failing: Failing) -> Decision:
    op, finding, log = failing.op, failing.finding, search.log
    attempts = search.attempts
    blamed = attempts.blamed(finding)
    assert blamed is not None
    text = f"{_text(op)} failed in {len(failing.attempts)} fresh processes ({finding.error})"
    control = control_of(search, failing)
    if control is None:
        told = f"{text}, but no control passed: whether anything else passes here is not known"
        return Decision(verdict=_or_cut_short(search, "not_replayable"), statement=told, op=blamed)
    if finding.host and not control.valid and not _is_the_logs_own_text(search, finding):
        told = f"{text}, with valid inputs too: a check of host code that refuses the call, not the values"
        return Decision(verdict="not_replayable", statement=told, op=blamed, control=control.text)
    other = misfit(finding, log)
    accused = is_accused(op, blamed, log)
    verdict: VerdictName = "confirmed" if accused and other is None else "confirmed_other_op"
    parts = [
        text,
        control.text,
        *([f"but {other}"] if other else []),
        *_of_inputs(search, failing),
        *_of_device(search, failing),
    ]
    return Decision(
        verdict=verdict,
        statement="; ".join(parts),
        rules_out=_ruled_out(search, control),
        op=blamed,
        control=control.text,
    )


def _is_the_logs_own_text(search: Search, finding: OpFinding) -> bool:
    root = root_fault(search.log)
    return root is not None and has_text_of(finding, root)


def _ruled_out(search: Search, control: Control) -> tuple[str, ...]:
    found = ["a late report of an earlier launch: each op before it was waited for and sound"]
    if len(search.smallest or ()) == 1:
        found[0] = "a failure that needs other ops beside it: with its inputs as given it fails alone"
    if control.valid:
        found.append("shapes and code of the op as the only cause: with other values it passes")
    found.append(f"a machine on which everything fails: {control.text}")
    return tuple(found)


def _of_inputs(search: Search, failing: Failing) -> list[str]:
    op = failing.op
    told = [inputs_told(op, search.attempts.trials[failing.attempts[-1] - 1].ops)]
    if op.stand_in is not None:
        told.append(f"executed as {op.call}: {op.stand_in}")
    return told


def _of_device(search: Search, failing: Failing) -> list[str]:
    """An op of a device may have been executed on the host: indices go out of range there too."""
    if failing.finding.used_device:
        return []
    root = root_fault(search.log)
    same = root is None or root.kind == failing.finding.kind
    if same or not is_index_error(failing.finding):
        return _on_the_host(search, [failing.op])
    kind = root.kind if root is not None else ""
    return [f"{text} ({kind} there, a refused index here)" for text in _on_the_host(search, [failing.op])]


def _on_the_host(search: Search, ops: Sequence[PlanOp]) -> list[str]:
    """That ops of a device were executed on the CPU, and why; nothing where they ran there anyway."""
    asked = search.attempts.options.device
    devices = sorted({op.device for op in ops if op.device and not op.device.startswith("cpu")})
    if asked is not None and not asked.startswith("cpu"):
        return [f"executed on the CPU: {asked} was asked for, and is not here"]
    if not devices:
        return []
    which = "the log's op ran" if len(ops) == 1 else "the log's ops ran"
    told = f"executed on the CPU, {which} on {' and '.join(devices)}"
    return [told if asked is None else f"{told} (--device {asked} was given)"]


def _nothing_failed(search: Search) -> Decision:
    attempts = search.attempts
    ran = {number for one in attempts.findings for number, _, _ in one.sound}
    tried = [one for one in attempts.findings if one.outcome != "interrupted"]
    if not tried:
        return Decision(verdict=None, statement="interrupted before anything could be said")
    lost = next((one for one in attempts.findings if one.outcome == "failed" and one.number is None), None)
    if lost is not None:
        told = f"an attempt ended between two ops ({lost.error}), in none that can be told"
        return Decision(verdict="not_replayable", statement=told)
    if not ran:
        return _nothing_ran(search, tried)
    passed = sum(one.outcome == "passed" for one in attempts.findings)
    if not passed:
        return Decision(
            verdict=_or_cut_short(search, "not_replayable"), statement="no attempt came to its end"
        )
    return _not_reproduced(search, ran, passed)


def _nothing_ran(search: Search, tried: Sequence[OpFinding]) -> Decision:
    missing = next((why for one in tried for _, why in one.skipped if "cannot be imported" in why), None)
    if missing is None and search.left_out:
        refused = next((why for why in search.left_out.values() if _is_of_the_log(search, why)), None)
        if refused is not None:
            told = f"the call itself is refused, as in the log: {refused}; a replay cannot add to that"
            return Decision(verdict="not_replayable", statement=told)
        return not_replayable(search.plan, search.left_out)
    error = missing or next((one.error for one in tried if one.error), None) or "no reason was printed"
    python = search.attempts.options.python
    told = f"nothing could be executed with {python}: {error}; --python takes the interpreter that has it"
    return Decision(verdict="setup_failed", statement=told)


def _is_of_the_log(search: Search, why: str) -> bool:
    """Whether an op was left out for the very text of the log's fault: the framework refuses its operands."""
    root = root_fault(search.log)
    cause = root.text.partition("\n")[0].partition(": ")[2] if root is not None else ""
    return bool(cause) and cause in why


def _not_reproduced(search: Search, ran: set[int], passed: int) -> Decision:
    executed = [search.plan.ops[number] for number in sorted(ran)]
    total = len(search.plan.ops)
    fidelity = least_true(op.fidelity() for op in executed) or "made"
    used_device = any(one.used_device for one in search.attempts.findings)
    told = [
        f"no failure in {passed} attempts with {len(ran)} of the {total} ops of the window",
        *([] if used_device else _on_the_host(search, executed)),
        FIDELITY_TEXT[fidelity],
        *_stood_in(executed),
        *_left_out(search),
        _RACE,
    ]
    suspects = [op for op in search.plan.ops if op.suspect is not None and op.number not in ran]
    if suspects:
        first = min(suspects, key=lambda op: op.suspect or 0)
        told.insert(1, f"the suspect {_text(first)} was not among them")
    ruled = f"a failure at each run of the {len(ran)} ops by themselves on this machine, with these inputs"
    return Decision(verdict="not_reproduced", statement="; ".join(told), rules_out=(ruled,))


def _stood_in(executed: Sequence[PlanOp]) -> list[str]:
    """How many ops were executed by other code than the log's kernel, and by which."""
    groups: dict[str, int] = {}
    for op in executed:
        if op.stand_in is not None:
            groups[op.stand_in] = groups.get(op.stand_in, 0) + 1
    return [f"{count} of them by a stand-in: {text}" for text, count in groups.items()][:REASONS_SHOWN]


def _left_out(search: Search) -> list[str]:
    if not search.left_out:
        return []
    told = numbers_by_reason(search.left_out, search.plan)[:REASONS_SHOWN]
    return [f"{len(search.left_out)} left out ({'; '.join(told)})"]


def _hang(search: Search, failing: Failing) -> Decision:
    limit = search.attempts.options.deadline_s
    text = f"{_text(failing.op)} did not end within {limit:.0f} s in {len(failing.attempts)} attempts"
    op = search.attempts.blamed(failing.finding)
    rules_out = ("the launches before it: each was waited for and sound",)
    return Decision(
        verdict="hang",
        statement="; ".join([text, *_of_inputs(search, failing), *_of_device(search, failing)]),
        op=op,
        rules_out=rules_out,
    )


def _out_of_memory(search: Search, failing: Failing) -> Decision:
    text = f"memory ran out in {len(failing.attempts)} attempts at {_text(failing.op)}"
    told = f"{text}; who holds it is another question: the window runs without the rest of the program"
    told = "; ".join([told, *_of_device(search, failing)])
    return Decision(verdict="out_of_memory", statement=told, op=search.attempts.blamed(failing.finding))


def _or_cut_short(search: Search, verdict: VerdictName) -> VerdictName | None:
    return None if search.attempts.interrupted else verdict


def _text(op: PlanOp) -> str:
    where = f" in step {op.step}" if op.step is not None else ""
    place = f" at {op.source.file}:{op.source.line}" if op.source else ""
    return f"{op.name}{where}{place}"

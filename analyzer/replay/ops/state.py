"""What an op replay knows between its attempts."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.replay.ops.attempts import OpAttempts, Trial
from analyzer.replay.ops.fitting import made_inputs_refused
from analyzer.replay.ops.observe import FAILING, OpFinding
from analyzer.replay.plan import Plan, PlanOp, PlanTensor
from analyzer.replay.report import Rung
from analyzer.schema import Result

LEFT_OUT_LIMIT = 12  # attempts that end in a mistake of ours, before what is known to run has to do


class Search:
    """The ops that are executed, and what was found of them.

    ``left_out``: ops whose call or inputs we could not build, with the reason. ``smallest``: the smallest
    list that failed (null = none did), ``minimal`` that no part of it can be left out.
    """

    def __init__(self, log: Result, attempts: OpAttempts) -> None:
        self.log = log
        self.attempts = attempts
        self.left_out: dict[int, str] = {}
        self.smallest: tuple[int, ...] | None = None
        self.minimal = False
        self.seed = 0
        self._mistakes = 0

    @property
    def plan(self) -> Plan:
        """What is executed."""
        return self.attempts.plan

    def active(self) -> tuple[int, ...]:
        """Ops of the window that are still to be executed, in launch order."""
        return tuple(number for number in self.plan.runnable() if number not in self.left_out)

    def is_over(self) -> bool:
        """Whether no further attempt may be made."""
        return self.attempts.interrupted or self.attempts.left <= 0

    def run(
        self,
        rung: Rung,
        ops: tuple[int, ...],
        *,
        valid: tuple[int, ...] = (),
        prefix: tuple[str, ...] = (),
    ) -> OpFinding:
        """One attempt."""
        trial = Trial(rung=rung, ops=ops, valid=valid, seed=self.seed, prefix=prefix)
        return self.attempts.run(trial)

    def window(
        self, rung: Rung, ops: tuple[int, ...] | None = None, prefix: tuple[str, ...] = ()
    ) -> OpFinding:
        """All ops that can run. One that fails by a mistake of ours is left out, and it begins anew.

        Args:
            rung: What is tried.
            ops: Those of them; null = all.
            prefix: A tool that runs the child.
        """
        while True:
            active = self.active()
            wanted = active if ops is None else tuple(one for one in ops if one in active)
            if not wanted:
                return OpFinding(outcome="setup_failed", error="no op of the window is left to execute")
            finding = self.run(rung, wanted, prefix=prefix)
            if not self._leave_out(finding) or self.is_over():
                return finding

    def is_evidence(self, finding: OpFinding) -> bool:
        """Whether an attempt failed, and not by a mistake of ours."""
        if finding.outcome not in FAILING or finding.own is not None:
            return False
        return finding.number is None or not made_inputs_refused(self.op(finding), finding, self.log)

    def op(self, finding: OpFinding) -> PlanOp:
        """The op that an attempt ended in."""
        assert finding.number is not None
        return self.plan.ops[finding.number]

    def closed(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """The ops with all that make their inputs, in launch order. Recorded inputs need no maker."""
        active, todo, found = set(self.active()), list(numbers), set()
        while todo:
            number = todo.pop()
            if number in found:
                continue
            found.add(number)
            makers = (maker_of(one) for one in self.plan.ops[number].tensors())
            todo.extend(maker for maker in makers if maker is not None and maker in active)
        return tuple(sorted(found))

    def _leave_out(self, finding: OpFinding) -> bool:
        """Leave out the op that failed by a mistake of ours. False = there is none."""
        self.left_out.update(dict(finding.skipped))
        if finding.number is None:
            return False
        why = None
        if finding.own is not None:
            told = (
                "its inputs could not be made" if finding.own == "inputs" else "the call does not fit the op"
            )
            why = f"{told}: {finding.error}"
            if self.op(finding).call.startswith("custom::") and not self.attempts.options.custom_extensions:
                why += "; --custom-extensions takes the package with its kernel"
        elif finding.outcome in FAILING:
            why = made_inputs_refused(self.op(finding), finding, self.log)
        if why is None:
            return False
        self.left_out[finding.number] = why
        self._mistakes += 1
        if self._mistakes >= LEFT_OUT_LIMIT:
            self._keep_only_sound()
        return True

    def _keep_only_sound(self) -> None:
        """Each mistake costs a child; what has run soundly does for the rest."""
        sound = {number for one in self.attempts.findings for number, _, _ in one.sound}
        for number in self.active():
            if number not in sound:
                self.left_out[number] = f"not tried after {LEFT_OUT_LIMIT} ops that could not be built"


def maker_of(tensor: PlanTensor) -> int | None:
    """The op of the plan whose result this input has to be; null = its values are known without it."""
    return tensor.from_op if tensor.fidelity != "recorded" else None


def numbers_by_reason(reasons: dict[int, str], plan: Plan) -> list[str]:
    """One sentence a reason, with the ops that it holds for."""
    groups: dict[str, list[str]] = {}
    for number, why in sorted(reasons.items()):
        groups.setdefault(why, []).append(plan.ops[number].name)
    return [f"{_listed(names)}: {why}" for why, names in groups.items()]


def _listed(names: list[str], shown: int = 3) -> str:
    distinct = list(dict.fromkeys(names))
    text = ", ".join(distinct[:shown])
    return text if len(distinct) <= shown else f"{text} and {len(distinct) - shown} more names"

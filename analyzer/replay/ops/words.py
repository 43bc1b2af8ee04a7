"""Words of a replay that several sentences share."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from analyzer.replay.plan import PlanArgument, PlanOp, PlanTensor
from analyzer.replay_result import Fidelity

FIDELITIES: tuple[Fidelity, ...] = ("recorded", "statistics", "made")  # from the truest on
FIDELITY_TEXT: dict[Fidelity, str] = {
    "recorded": "inputs: recorded values",
    "statistics": "inputs: made between two recorded ends, which are among them; the rest is not known",
    "made": "inputs: made, so only the code with these shapes was tried, not the values of the crash",
}
FIDELITY_WORDS: dict[Fidelity, str] = {
    "recorded": "recorded values",
    "statistics": "values made between recorded ends",
    "made": "made values",
}
_OF_SOME: dict[Fidelity, str] = {
    "recorded": "recorded values of {}",
    "statistics": "{} made between recorded ends",
    "made": "{} made, the values of the crash are not known",
}


def least_true(fidelities: Iterable[Fidelity]) -> Fidelity | None:
    """The one to answer for all of them; null = there is none."""
    return max(fidelities, key=FIDELITIES.index, default=None)


def inputs_told(op: PlanOp, ran: Collection[int]) -> str:
    """Where the inputs of an op came from, each by its name where they differ.

    Args:
        op: Of the plan.
        ran: Numbers of the ops that were executed with it: their results are taken as they were.
    """
    named: dict[Fidelity, list[str]] = {}
    handed = []
    for argument in op.arguments:
        tensors = _tensors_of(argument)
        own = [one.fidelity for one in tensors if one.from_op is None or one.from_op not in ran]
        worst = least_true(own)
        if worst is not None:
            named.setdefault(worst, []).append(argument.name)
        elif tensors:
            handed.append(argument.name)
    if len(named) <= 1 and not handed:
        return FIDELITY_TEXT[op.fidelity()]
    parts = [_OF_SOME[one].format(_listed(named[one])) for one in FIDELITIES if one in named]
    parts += [f"{_listed(handed)} from the ops before it"] if handed else []
    return f"inputs: {', '.join(parts)}"


def _tensors_of(argument: PlanArgument) -> list[PlanTensor]:
    several = [one for one in argument.tensors or () if one is not None]
    return [argument.tensor] if argument.tensor is not None else several


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

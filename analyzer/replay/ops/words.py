"""Words of a replay that several sentences share."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.replay_result import Fidelity

FIDELITIES: tuple[Fidelity, ...] = ("recorded", "statistics", "made")  # from the truest on
FIDELITY_TEXT: dict[Fidelity, str] = {
    "recorded": "inputs: recorded values",
    "statistics": "inputs: made between two recorded ends, which are among them; the rest is not known",
    "made": "inputs: made, so only the code with these shapes was tried, not the values of the crash",
}


def least_true(fidelities: Iterable[Fidelity]) -> Fidelity | None:
    """The one to answer for all of them; null = there is none."""
    return max(fidelities, key=FIDELITIES.index, default=None)

"""What a program prints while it ends: its driver has shut down already, and destructors still call it."""

from __future__ import annotations

from analyzer.incident.roles import RoleDecision
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord
from analyzer.traits import is_death

_SHUT_DOWN = frozenset({"cudaErrorCudartUnloading", "hipErrorDeinitialized", "CUDA_ERROR_DEINITIALIZED"})
_WORDS = "driver shutting down"
_NEAR = 20  # lines between the last call of a destructor and the end of its process


def exit_noise(known: Knowledge) -> dict[int, RoleDecision]:
    """Faults of a process that is ending anyway: none of them is why it ends (formats.md 2, code 4).

    The driver shuts down when ``main`` has returned. Who aborts right behind such a call does so in a
    destructor.
    """
    decided: dict[int, RoleDecision] = {}
    ending: dict[tuple[int, str], FaultRecord] = {}
    for index, record in enumerate(known.records):
        writer = (record.source, record.process)
        if record.name in _SHUT_DOWN or _WORDS in record.text:
            ending[writer] = record
            reason = "the driver had shut down already: the process was ending"
            decided[index] = RoleDecision(role="teardown", reason=reason)
        elif is_death(record) and writer in ending and record.line - ending[writer].last_line <= _NEAR:
            reason = f"it aborted in a destructor while it ended (line {ending[writer].line})"
            decided[index] = RoleDecision(role="teardown", reason=reason)
        elif not record.teardown:
            ending.pop(writer, None)
    return decided

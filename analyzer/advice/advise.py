"""What to run next, for the whole of what was found: the cheapest knowledge first."""

from __future__ import annotations

from analyzer.advice.aoti_steps import aoti_steps
from analyzer.advice.driver_log_steps import kernel_log_steps
from analyzer.advice.next_steps import next_steps
from analyzer.advice.program import Surroundings, surroundings_of
from analyzer.incident.incident import Incident
from analyzer.knowledge import Diagnosis
from analyzer.schema import NextStep
from analyzer.verdict.driver_notes import own_verdicts


def advise(incident: Incident, found: Diagnosis) -> list[NextStep]:
    """Commands in the order in which they should be tried.

    Args:
        incident: The faults and their roles.
        found: What was concluded about the root fault.
    """
    known, fault = incident.known, incident.fault
    steps = next_steps(
        fault,
        found.conclusion.confidence,
        known.modes,
        known.advice,
        has_ops=bool(known.timeline.ops.height),
        beside=surroundings_of(fault, known.records, known.readers[fault.source].raw)
        if fault
        else Surroundings(),
    )
    health = kernel_log_steps(known.records, fault)
    if fault is None:
        return steps + health
    if own_verdicts(known.records, fault):
        steps = health + steps  # a device that the driver wants reset or rebooted is looked at before a run
    else:
        steps += health
    return aoti_steps(fault, found.suspects, known.kernels.level()) + steps

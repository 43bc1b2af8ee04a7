"""What a program prints while it ends: its driver has shut down already, and destructors still call it."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.incident.incident import Change, Incident, RoleDecision, SetRole, place_of
from analyzer.model import FaultRecord
from analyzer.traits import is_death

_SHUT_DOWN = frozenset({"cudaErrorCudartUnloading", "hipErrorDeinitialized", "CUDA_ERROR_DEINITIALIZED"})
_SHUT_DOWN_CODE = 4
_NEAR = 20  # lines between the last call of a destructor and the end of its process


def exit_noise(incident: Incident) -> Iterator[Change]:
    """What a process prints that is ending anyway is not why it ends (formats.md 2, code 4).

    The driver shuts down when ``main`` has returned. Who aborts right behind such a call does so in a
    destructor.
    """
    ending: dict[tuple[int, str], FaultRecord] = {}
    for index, record in enumerate(incident.records):
        writer = (record.source, record.process)
        if record.code == _SHUT_DOWN_CODE or record.name in _SHUT_DOWN:
            ending[writer] = record
            yield _of_end(index, "the driver had shut down already: the process was ending", record)
        elif is_death(record) and writer in ending and record.line - ending[writer].last_line <= _NEAR:
            last = ending[writer]
            yield _of_end(index, f"it aborted in a destructor while it ended (line {last.line})", last)
        elif not record.teardown:
            ending.pop(writer, None)


def _of_end(index: int, reason: str, last: FaultRecord) -> SetRole:
    role = RoleDecision(role="teardown", reason=reason, lines=(place_of(last),), aside=True)
    return SetRole(index=index, role=role)

"""Memory and load around a failure: who was killed for memory, what the server did (formats.md 3.21)."""

from __future__ import annotations

import msgspec

from analyzer.incident.host_kills import is_host_kill
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord
from analyzer.schema import Conclusion
from analyzer.verdict.cause import KILL, ran_out_of_memory

_SHOWN = 4


def with_load(conclusion: Conclusion, known: Knowledge, root: FaultRecord) -> Conclusion:
    """Add what the server told about its load, and whose memory ran out before a process was killed.

    A kill in the kernel's log is the root where something links it with the program, else of another one.
    """
    notes = [*conclusion.notes, *(f"line {state.line}: {state.text}" for state in known.states[:_SHOWN])]
    if root.kind == "host_abort" and root.name == KILL:
        full = ran_out_of_memory(known.records, root)
        told = [f"line {record.line}: {record.text.splitlines()[0]}" for record in full[:_SHOWN]]
        if not told and not any(is_host_kill(one) for one in known.records):
            told = ["SIGKILL names nobody: the kernel's out-of-memory killer would stand in dmesg"]
        notes.extend(told)
    return msgspec.structs.replace(conclusion, notes=notes)

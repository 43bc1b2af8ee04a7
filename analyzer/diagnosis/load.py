"""Memory and load around a failure: who was killed for memory, what the server did (formats.md 3.21)."""

from __future__ import annotations

import msgspec

from analyzer.diagnosis.knowledge import Knowledge
from analyzer.model import FaultRecord
from analyzer.schema import CauseClass, Conclusion

_SHOWN = 4
KILL = "SIGKILL"


def with_load(conclusion: Conclusion, known: Knowledge, root: FaultRecord) -> Conclusion:
    """Add what the server told about its load; a killed process whose memory ran out failed for memory."""
    notes = [*conclusion.notes, *(f"line {state.line}: {state.text}" for state in known.states[:_SHOWN])]
    cause: CauseClass | None = conclusion.cause_class
    if root.kind == "host_abort" and root.name == KILL:
        full = [record for record in known.records if record.kind == "out_of_memory"]
        cause = "memory" if full else cause
        told = [f"line {record.line}: {record.text.splitlines()[0]}" for record in full[:_SHOWN]]
        notes.extend(told or ["SIGKILL names nobody: the kernel's out-of-memory killer would stand in dmesg"])
    return msgspec.structs.replace(conclusion, cause_class=cause, notes=notes)

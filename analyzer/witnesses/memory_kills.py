"""Deaths for host memory, and the kills that they explain (formats.md 3.4). No witness by itself.

A process that takes too much memory is killed by the kernel, and each of its watchers tells it once as a
signal and once as the reason. The memory is that of the host: a full GPU raises an error and kills nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.model import FaultRecord, Record
from analyzer.parse.killed_process import killed_process
from analyzer.parse.oom_text import OF_HOST
from analyzer.witnesses.forms import Seen
from analyzer.witnesses.server_lines import VIEWER_FRAME, relayed

OF_LIMIT = (
    "memory of the host, not of the GPU: its container, unit or job reached its limit, or the host ran out"
)
__all__ = ("KILLED", "NEAR_LINES", "OF_HOST", "OF_LIMIT", "memory_death", "without_explained")
KILLED = "SIGKILL"
NEAR_LINES = 8  # a state of kubectl, docker inspect or a unit in the journal, with the reason and the signal


def memory_death(seen: Seen, name: str, why: str) -> FaultRecord:
    """Somebody tells that a process was killed for memory, and what memory it was."""
    text = seen.text.strip(f"{VIEWER_FRAME},")
    fault = relayed(seen, name, "out_of_memory", f"{text} ({why})")
    pid = seen.number("PID") or fault.pid
    return msgspec.structs.replace(fault, pid=pid, detail=killed_process(text))


def without_explained(records: Sequence[Record]) -> list[Record]:
    """The records without kills that a death for memory close by explains."""
    memory = [one for one in records if isinstance(one, FaultRecord) and one.kind == "out_of_memory"]
    return [record for record in records if not _is_explained(record, memory)]


def _is_explained(record: Record, memory: Sequence[FaultRecord]) -> bool:
    if not isinstance(record, FaultRecord) or record.name != KILLED:
        return False
    return any(one.line - NEAR_LINES <= record.line <= one.last_line + NEAR_LINES for one in memory)

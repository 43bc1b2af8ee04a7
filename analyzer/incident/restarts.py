"""Where the server of a log was started again, by what it and its launcher print (formats.md 7.7)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.incident.first import seconds_between
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, ServerStart
from analyzer.traits import is_death, is_sticky, is_victim

# The last part of a process key that names a process, not what it runs in.
_TASK = re.compile(
    r"(?:^|/)(?:[^/]*\bpid=[^/]*|(?:rank|default|TP)?[0-9]+|(?:DP|TP|EP|PP)[0-9][^/]*)$|\[[0-9]+\]$"
)
_GONE_S = 120.0  # teardown takes seconds: what fails so long after the end of its process is a new one


def restart_lines(known: Knowledge) -> list[tuple[int, int]]:
    """Source and line of each restart between two faults of one input, by line.

    A start parts what failed before it from what failed after it if a launcher says that it starts again, if
    the same start stands above the first fault already, or if a process was said to have ended in between.
    One start alone may be that of a second server, or of the part that starts last. A death followed by a
    sticky fault of the same writer two minutes later is a restart that nobody announced.
    """
    found = {
        (start.source, start.line)
        for start in known.starts
        if _parts(start, known.starts, [one for one in known.records if one.source == start.source])
    }
    return sorted(found | set(_unannounced(known.records)))


def _parts(start: ServerStart, starts: Sequence[ServerStart], records: Sequence[FaultRecord]) -> bool:
    before = [one for one in records if one.last_line < start.line and same_container(one, start)]
    if not any(is_sticky(one) or is_death(one) for one in before):
        return False
    first = min(one.line for one in before)
    known_before = any(
        other.program == start.program and other.source == start.source and other.line < first
        for other in starts
    )
    ended = any(is_death(one) or one.relayed for one in before)
    return start.again or known_before or ended


def same_container(record: FaultRecord, start: ServerStart) -> bool:
    """Whether both speak from one container or unit; systemd speaks of all of them."""
    return start.program == "systemd" or _container(record.process) == _container(start.process)


def _container(process: str) -> str:
    """``vllm-1`` of ``vllm-1`` and of ``vllm-1/Worker_TP0 pid=7``, ``serve`` of ``serve[4123]/rank1``."""
    while process and (task := _TASK.search(process)) is not None:
        process = process[: task.start()].rstrip("/")
    return process


def _unannounced(records: Sequence[FaultRecord]) -> list[tuple[int, int]]:
    """Lines of sticky faults long after the death of the same writer."""
    found = []
    deaths: dict[tuple[int, str], FaultRecord] = {}
    for one in records:
        writer = (one.source, one.process)
        death = deaths.get(writer)
        if death is not None and is_sticky(one) and not (one.teardown or one.met or is_victim(one)):
            passed = seconds_between(death, one)
            if passed is not None and passed > _GONE_S:
                found.append((one.source, one.block_first))
        if is_death(one):
            deaths[writer] = one
    return found

"""Whom a text says to have been killed for memory (formats.md 3.4, 3.21)."""

from __future__ import annotations

import re
from functools import lru_cache

from analyzer.model import KilledProcess
from analyzer.numbers import MAX_RANK, natural

_VICTIM = re.compile(
    r"Kill(?:ed)? process (?P<pid1>[0-9]+) \((?P<name1>[^)\n]{1,200})\)"
    r"|task=(?P<name2>[^\n]{0,200}?),pid=(?P<pid2>[0-9]+)"
)
# Told by others than the system: Kubernetes' node events, earlyoom.
_TOLD = re.compile(
    r"victim process: (?P<name1>[^\s,]+), pid: (?P<pid1>[0-9]+)"
    r"|sending SIGKILL to process (?P<pid2>[0-9]+) (?:uid [0-9]+ )?\"(?P<name2>[^\"\n]+)\""
)


@lru_cache(maxsize=4096)
def killed_process(text: str) -> KilledProcess | None:
    """The process that was killed; null = the text names nobody."""
    by_system = _VICTIM.search(text)
    found = by_system or _TOLD.search(text)
    if found is None:
        return None
    pid, name = found["pid1"] or found["pid2"], found["name1"] or found["name2"]
    return KilledProcess(pid=natural(pid, MAX_RANK) or 0, name=name.strip(), by_system=by_system is not None)

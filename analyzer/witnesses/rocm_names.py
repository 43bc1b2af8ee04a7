"""Which ``Kernel Name:`` belongs to which report of ROCm's runtime. No witness by itself.

The runtime prints the name behind the report of its queue. Where several queues abort together, or the
runtime walks over all queues, several names follow: then none of them is known to be the one that faulted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from analyzer.witnesses.forms import Seen

NEAR_LINES = 60  # between a queue error and the kernel's name, with the runtimes' other lines in between


class KernelNames:
    """Names and reports of each process, by line."""

    def __init__(self, faults: Sequence[Seen], seen: Sequence[Seen]) -> None:
        self._reports: dict[str, list[int]] = {}
        self._names: dict[str, list[tuple[int, Seen]]] = {}
        for one in faults:
            self._reports.setdefault(one.process, []).extend(one.lines)
        for one in seen:
            if one.rule == "kernel_name":
                self._names.setdefault(one.process, []).extend((line, one) for line in one.lines)
        for lines in self._reports.values():
            lines.sort()
        for names in self._names.values():
            names.sort(key=lambda name: name[0])

    def of(self, one: Seen) -> list[Seen]:
        """The different names that the report can have meant: those behind it, else those before it."""
        names, reports = self._names.get(one.process, []), self._reports.get(one.process, [])
        at = bisect_right(names, one.line, key=lambda name: name[0])
        behind = names[at : at + NEAR_LINES]
        if behind and behind[0][0] - one.line <= NEAR_LINES:
            end = _following(reports, behind[0][0])
            return _different([name for name in behind if name[0] < end])
        before = names[max(0, at - NEAR_LINES) : at]
        return _different([name for name in before if _is_own(name[0], one.line, reports)])


def _following(reports: Sequence[int], line: int) -> int:
    """The first report below a line, at most so far that names still count."""
    at = bisect_right(reports, line)
    limit = line + NEAR_LINES
    return min(reports[at], limit) if at < len(reports) else limit


def _is_own(name: int, line: int, reports: Sequence[int]) -> bool:
    """Whether a name above a report is no other report's: none stands shortly above the name."""
    at = bisect_left(reports, name)
    others = at > 0 and name - reports[at - 1] <= NEAR_LINES
    return line - name <= NEAR_LINES and not others


def _different(names: Sequence[tuple[int, Seen]]) -> list[Seen]:
    return list({id(one): one for _, one in names}.values())

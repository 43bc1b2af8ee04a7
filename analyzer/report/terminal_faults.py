"""The other faults of a log beside the root: rows of the terminal report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.report.story.telling import kind_words
from analyzer.report.terminal_rows import Row, count_of, place_of, say
from analyzer.schema import Fault, Result

SHOWN = 3  # of each list; the others are counted


def kind_of(fault: Fault) -> str:
    """The kind in the vocabulary of the result, or the words of its witness where it has none."""
    return kind_words(fault) if fault.kind == "unknown" else fault.kind


def other_fault_rows(result: Result) -> Iterator[Row]:
    """What followed from the root fault, what only stands beside it, and other root faults."""
    roots = [fault for fault in result.faults if fault.role == "root"]
    after = [fault for fault in result.faults if fault.role in {"cascade", "teardown"}]
    beside = [fault for fault in result.faults if fault.role == "bystander"]
    for words, faults in (("caused by this one", after), ("of others", beside)):
        if faults:
            number = count_of(sum(fault.count for fault in faults), "report")
            yield Row(text=say(f"{number} {words}: {_listed(result, faults)}"), hang="  ")
    if roots[1:]:
        yield Row(text=say(f"other root faults: {_listed(result, roots[1:])}"), hang="  ")


def _listed(result: Result, faults: Sequence[Fault]) -> str:
    """``hang_timeout at line 9 (12 times), peer_lost at line 20 and 3 more``."""
    shown = ", ".join(_one(result, fault) for fault in faults[:SHOWN])
    rest = sum(fault.count for fault in faults[SHOWN:])
    return f"{shown} and {rest} more" if rest else shown


def _one(result: Result, fault: Fault) -> str:
    times = f" ({fault.count} times)" if fault.count > 1 else ""
    return f"{kind_of(fault)} at {place_of(result, fault.input, fault.line)}{times}"

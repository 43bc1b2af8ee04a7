"""Errors that the program survived: it answered requests afterwards, and nothing failed after it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import polars as pl

from analyzer.incident.driver_messages import is_of_driver_log
from analyzer.incident.incident import Change, Incident, RoleDecision, SetRole
from analyzer.incident.restarts import same_container
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord
from analyzer.speech.answers import ANSWERED, is_answer
from analyzer.speech.handled import DONE, is_calm_line, says_instead
from analyzer.tables.kinds import CHECKS
from analyzer.traits import is_death, is_sticky, is_victim

_REFUSED = (" 500 Internal Server Error", " 503 Service Unavailable")
_EXIT = "[RECORD] EXIT "
# TensorRT's builder tries tactics until one fits; trtexec says how it ended.
_SUCCEEDED = ("Engine generation completed in ", "&&&& PASSED ")
_FAILED = "&&&& FAILED "
_HANDLED_LINES = 3
_PAIRS = 200  # of a process: who survives that often survives the next one too
# Without a time such a line may come from a buffer that was flushed at exit (formats.md 7.6).
_STEP_VALUE = re.compile(r"^step [0-9]+\b.*[0-9]")
_STEPS = ("step ", "Step ", "epoch ", "Epoch ", "iteration ")  # of any program
_LOGGED_STEP = re.compile(r"^(?:(?:INFO|DEBUG)\b:? *)?(?:[Ss]tep|[Ee]poch|iteration) [0-9]+\b")


class Survival(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of one fault did after its last one. ``steps``: with a value printed.

    ``succeeded``: it said that what it did has succeeded.
    """

    answers: int
    steps: int
    succeeded: bool = False

    @property
    def words(self) -> str:
        """``it answered 3 requests afterwards``."""
        said = [
            f"{verb} {count} {what}{'s' * (count != 1)}"
            for verb, count, what in (
                ("answered", self.answers, "request"),
                ("finished", self.steps, "step"),
            )
            if count
        ]
        if self.succeeded:
            said.append("said that it succeeded")
        return f"an error that the program survived: it {' and '.join(said)} afterwards"


def survived(incident: Incident) -> Iterator[Change]:
    """Nothing is the root where every process with a fault went on working after its last one.

    Sticky faults, deaths and lost peers are never survived, whatever other threads still print.
    """
    records, root = incident.records, incident.root
    if root is None or any(_is_fatal(record) for record in records):
        return
    last: dict[tuple[int, str], FaultRecord] = {}
    for record in records:
        before = last.get((record.source, record.process))
        if before is None or record.last_line > before.last_line:
            last[record.source, record.process] = record
    survivals = {key: _survival(incident.known, record) for key, record in last.items()}
    survival = survivals[records[root].source, records[root].process]
    if survival is not None and None not in survivals.values():
        yield SetRole(index=root, role=_role(survival, aside=False))


def survived_beside(incident: Incident) -> Iterator[Change]:
    """Faults of processes that went on working have no part where another one failed for good.

    What did not end its own process ended no other one, whichever stands first in the file. Without another
    that failed there is nothing to set it against: ``survived``.
    """
    records = incident.records
    groups: dict[tuple[int, str], list[int]] = {}
    for index, record in enumerate(records):
        groups.setdefault((record.source, record.process), []).append(index)
    fatal = {key for key, own in groups.items() if any(_is_fatal(records[index]) for index in own)}
    for key, own in groups.items():
        last = max((records[index] for index in own), key=lambda record: record.last_line)
        survival = _survival(incident.known, last) if fatal and key not in fatal else None
        if survival is not None:
            yield from (SetRole(index=index, role=_role(survival, aside=True)) for index in own)
        else:
            yield from _between(incident, own)


def _role(survival: Survival, *, aside: bool) -> RoleDecision:
    return RoleDecision(role="bystander", reason=survival.words, aside=aside)


def _between(incident: Incident, own: Sequence[int]) -> Iterator[Change]:
    """Faults behind which their process worked on before its next one: they did not cause that one."""
    for index, following in list(pairwise(own))[:_PAIRS]:
        record, until = incident.records[index], incident.records[following].block_first
        if _is_fatal(record) or record.last_line >= until:
            continue
        if (survival := _survival(incident.known, record, until)) is not None:
            yield SetRole(index=index, role=_role(survival, aside=True))


def _is_fatal(record: FaultRecord) -> bool:
    return (
        is_sticky(record)
        or is_death(record)
        or is_victim(record)
        or is_of_driver_log(record)
        or record.relayed
        or record.site == "device"
        or record.kind in CHECKS
    )


def _survival(known: Knowledge, fault: FaultRecord, until: int | None = None) -> Survival | None:
    """What a process did after a fault; null = nothing shows that it went on.

    Args:
        known: All that is known.
        fault: The last one, or the one before ``until``.
        until: Line of the next fault; null = there is none. What a server does that was started again shows
            nothing of the one before.
    """
    reader = known.readers[fault.source]
    starts = [one.line for one in known.starts if one.source == fault.source and same_container(fault, one)]
    ends = [line for line in (*starts, until) if line is not None and line > fault.last_line]
    succeeds = (*_SUCCEEDED, *(DONE if _is_handled(known, fault) else ()))
    rows = reader.matching([ANSWERED, *_REFUSED, _EXIT, *_STEPS, *succeeds, _FAILED])
    rows = rows.filter(pl.col("line") > fault.last_line)
    if ends:
        rows = rows.filter(pl.col("line") < min(ends))
    own = rows.filter(pl.col("process") == fault.process)
    text = pl.col("text")
    answers = {row["line"] for row in own.iter_rows(named=True) if is_answer(row["text"])}
    steps = _steps_after(known, fault, own)
    succeeded = own.filter(text.str.contains_any(list(succeeds)))["line"].to_list()
    done = max([*answers, *steps, *succeeded], default=0)
    failed = text.str.contains_any([*_REFUSED, _FAILED]) & (pl.col("line") > done)
    died = text.str.starts_with(_EXIT) & ~text.str.contains(r"\bcode=0\b")
    if not done or rows.filter(failed | died).height:
        return None
    return Survival(answers=len(answers), steps=len(steps), succeeded=bool(succeeded))


def _steps_after(known: Knowledge, fault: FaultRecord, own: pl.DataFrame) -> list[int]:
    """Lines of steps that are later than a fault, ``own``: lines of its process."""
    handled = _is_handled(known, fault)
    steps = own.filter(pl.col("text").str.contains((_LOGGED_STEP if handled else _STEP_VALUE).pattern))
    return [line for line in steps["line"] if handled or _is_later(known, fault, line)]


def _is_handled(known: Knowledge, fault: FaultRecord) -> bool:
    """The program says, no louder than a warning, that it tries something else.

    The words stand behind the error or in the next lines: its lines come in order, so a step behind them is
    later also without a time. Without a logger the error itself has to be calm.
    """
    reader = known.readers[fault.source]
    told = reader.lines(fault.line, fault.line)
    after = reader.after(fault.last_line, fault.process, _HANDLED_LINES)
    calm = any(is_calm_line(line.text, line.level) for line in told)
    said = [line for line in (*told, *after) if says_instead(line.text)]
    return any(calm or line.level is not None for line in said)


def _is_later(known: Knowledge, fault: FaultRecord, number: int) -> bool:
    times = [line.time_ns for line in known.readers[fault.source].lines(number, number)]
    return fault.time_ns is not None and any(time is not None and time > fault.time_ns for time in times)

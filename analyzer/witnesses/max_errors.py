"""Errors of MAX: kernel error blocks, failed device calls, NaN reports (observed.md 10-15, 17, 20)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import Advice, FaultRecord, Line, ModeRecord, Reading, Record
from analyzer.parse.max_error_block import Block, read_block
from analyzer.parse.max_error_text import CAUSES, HINTS, ErrorText, TextRole, read_text
from analyzer.parse.source_stack import MAX_FOREIGN, traceback_before
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses, by_process, read_distinct
from analyzer.witnesses.max_error_record import Event, Found, build_record

NAME = "max_errors"
FETCHED_FAULTS = 50  # of a process: only the first error matters, and a dead context repeats itself for ever
_BEFORE_LINES = 400  # a chained traceback with another writer in between
_BODY_LINES = 256  # grows if the block goes on; six fused ops take 80 lines
_MAX_BODY_LINES = 16_384
_HEADS: frozenset[TextRole] = frozenset({"entry", "kernel"})


class _Out:
    """What was read so far; advice, modes and losses once for each wording."""

    def __init__(self) -> None:
        self.faults: list[FaultRecord] = []
        self.advice: dict[str, Advice] = {}
        self.modes: dict[tuple[str, bool], ModeRecord] = {}
        self.losses = Losses(NAME)
        self.parsed: set[int] = set()
        self.continuation: set[int] = set()

    def advise(self, source: int, line: int, text: ErrorText) -> None:
        """Keep an advice; being given, it also tells that the switch is off."""
        advice = Advice(source=source, line=line, text=text.text, command=text.setting)
        self.advice.setdefault(text.text, advice)
        name = "source_tracebacks" if text.role == "source_hint" else "device_sync_mode"
        self.mode(source, line, name, value=False)

    def mode(self, source: int, line: int, name: str, *, value: bool) -> None:
        """Keep the first line that shows this state of a switch."""
        mode = ModeRecord(source=source, line=line, name=name, value=value)
        self.modes.setdefault((name, value), mode)

    def reading(self) -> Reading:
        """All of it, by line."""
        records: list[Record] = [*self.faults, *self.advice.values(), *self.modes.values()]
        return Reading(
            records=sorted(records, key=lambda record: record.line),
            parsed=sorted(self.parsed),
            continuation=sorted(self.continuation - self.parsed),
            losses=self.losses.all(),
        )


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source.

    Traceback and body are fetched for the first ``FETCHED_FAULTS`` failures of a process; a later one is
    counted in the last failure with the same text.
    """
    out = _Out()
    for events in by_process(read_distinct(frame, read_text, out.losses)):
        _Process(events, fetch, out).run()
    return out.reading()


class _Process:
    """The events of one process, in order."""

    def __init__(self, events: list[Event], fetch: Fetch, out: _Out) -> None:
        self.events = events
        self.fetch = fetch
        self.out = out
        self.source = events[0].line.source
        self.own = {event.line.number for event in events}
        self.done: set[int] = set()
        self.faults = 0
        self.same: dict[tuple[str | None, str], int] = {}  # kernel and text -> position of the record

    def run(self) -> None:
        """Read all failures, then count the lines used."""
        at = 0
        while at < len(self.events):
            event = self.events[at]
            if event.line.number in self.done:
                at += 1
            elif event.value.role in HINTS:
                self._take_hints(at, at + 1)
                at += 1
            else:
                at = self._failure(at)
        self.out.parsed |= self.done & self.own
        self.out.continuation |= self.done - self.own

    def _failure(self, at: int) -> int:
        """The failure that begins with event ``at``; gives the event to go on with."""
        end = at
        while self._follows(end, at, _HEADS if end == at else frozenset({"kernel"})):
            end += 1
        found = Found(heads=self.events[at:end])
        if self._follows(end, at, CAUSES):
            found.cause = self.events[end]
            end += 1
        hints = end
        while self._follows(hints, at, HINTS):
            hints += 1
        self.done.update(event.line.number for event in self.events[at:end])
        self.faults += 1
        if self.faults <= FETCHED_FAULTS:
            self._fetch(found)
        if not found.body:
            found.hints = self._take_hints(end, hints)
        if self.faults <= FETCHED_FAULTS or not self._fold(found):
            self._add(found)
        return hints if not found.body else end

    def _follows(self, at: int, first: int, roles: frozenset[TextRole]) -> bool:
        """Event ``at`` has one of the roles and stands close enough to the one before."""
        if at >= len(self.events) or self.events[at].value.role not in roles:
            return False
        return at == first or self.events[at].line.number - self.events[at - 1].line.number <= MAX_FOREIGN

    def _take_hints(self, first: int, end: int) -> list[tuple[int, ErrorText]]:
        hints = [(event.line.number, event.value) for event in self.events[first:end]]
        for number, text in hints:
            self.done.add(number)
            self.out.advise(self.source, number, text)
        return hints

    def _fetch(self, found: Found) -> None:
        """Read what stands around the gated lines: the traceback before, the body after."""
        first = found.first.line
        before = [*_flat(self.fetch.before(first.number, first.process, _BEFORE_LINES))]
        before += [(first.number, text) for text in found.first.above]
        found.trace = traceback_before([text for _, text in before])
        if found.trace is not None:
            self.done.update(before[n][0] for n in found.trace.lines)
            found.block_first = before[found.trace.lines[0]][0]
        if found.heads:
            self._fetch_body(found)

    def _fetch_body(self, found: Found) -> None:
        """Read the lines after the heads, more of them while the block goes on."""
        head, limit = found.heads[-1], _BODY_LINES
        while True:
            after = self.fetch.after(head.line.number, head.line.process, limit)
            found.body = [*((head.line.number, text) for text in head.below), *_flat(after)]
            found.block = read_block([text for _, text in found.body])
            if found.block.closed or len(after) < limit or limit >= _MAX_BODY_LINES:
                break
            limit *= 4
        self.done.update(found.body[n][0] for n in found.block.lines)
        self._keep(found, found.block)

    def _keep(self, found: Found, block: Block) -> None:
        """Advice, modes and losses of a body."""
        found.hints = [(found.body[n][0], text) for n, text in block.hints]
        for number, text in found.hints:
            self.out.advise(self.source, number, text)
        for position, why in [*block.unread, *([block.fusion_error] if block.fusion_error else [])]:
            number, text_lost = found.body[position]
            if number not in self.own:  # a gated one is counted already
                self.out.losses.add(self.source, number, text_lost, why)
        if block.sources_at is not None:
            number = found.body[block.sources_at][0]
            self.out.mode(self.source, number, "source_tracebacks", value=True)

    def _fold(self, found: Found) -> bool:
        """Count a late repeat in the record that said the same; false = none did."""
        at = self.same.get((found.kernel, found.text))
        if at is None:
            return False
        record = self.out.faults[at]
        last = max([record.last_line, found.last.line.number, *(number for number, _ in found.hints)])
        self.out.faults[at] = msgspec.structs.replace(record, count=record.count + 1, last_line=last)
        return True

    def _add(self, found: Found) -> None:
        record = build_record(found, NAME)
        self.same[found.kernel, found.text] = len(self.out.faults)
        if found.raised:  # a late repeat of it is known by its gated line alone
            self.same[found.kernel, found.last.value.text] = len(self.out.faults)
        self.out.faults.append(record)
        if record.site == "launch_serialised":
            self.out.mode(self.source, record.line, "device_sync_mode", value=True)


def _flat(lines: Sequence[Line]) -> list[tuple[int, str]]:
    """Number and text; a text with several lines gives several."""
    return [(line.number, part) for line in lines for part in line.text.split("\n")]


WITNESS = Witness(
    name=NAME,
    program="max",
    gates=(
        "An error occurred in kernel ",
        "CUDA call failed: ",
        "HIP call failed: ",
        "NaN/Inf detected in ",
        "Unhandled exception caught during execution: ",
        "support your current NVIDIA GPU driver",
        "MODULAR_DE",  # both spellings of the advice (formats.md 3.10); max_modes has it too
    ),
    read=read,
    grammar="max_errors.lark",
)

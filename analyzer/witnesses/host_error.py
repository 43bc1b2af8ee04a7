"""Errors that host code raises: what stands around their line, and folding of repeats. No witness by itself.

A dead context repeats its error for ever (formats.md 5). The first ``FETCHED`` errors of a process are read
with the traceback before and the text after them; a later one is counted in the record that said the same,
apart from numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Generic, Protocol, TypeVar

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Line, Reading, Record
from analyzer.parse.source_stack import (
    HEADER,
    Traceback,
    innermost_user,
    is_user_frame,
    parse_frame,
    traceback_before,
)
from analyzer.schema import SourceFrame
from analyzer.tables.report_sites import compile_phase, is_sync_point
from analyzer.witness import Fetch, witnesses
from analyzer.witnesses.distinct import Losses, Told, by_process, read_distinct

FETCHED = 24  # of a process: enough for several ranks of one file without tags
BEFORE_LINES = 400  # a chained traceback of a compiled model with another writer in between
_PACKAGES = frozenset({"site-packages", "dist-packages"})
_FRAMEWORKS = frozenset({"torch", "triton", "cupy", "cupyx", "jax", "jaxlib", "numpy", "typing_extensions"})
DISTINCT = 400  # texts of a source that are read one by one
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
AFTER_LINES = 160  # C++ frames of a deep stack


class HasText(Protocol):
    """What a witness read of one line."""

    @property
    def text(self) -> str:
        """The text without what was glued before it: equal texts are one error."""


T = TypeVar("T", bound=HasText)


class Around(msgspec.Struct):
    """What stands around an error. ``before``, ``after``: number and text; ``used``: lines that belong to it.

    ``running``: Python frames from the innermost one that is no framework's inwards, text of the first cut to
    the part that was running (the interpreter marks it with ``^``).
    """

    before: list[tuple[int, str]] = []
    after: list[tuple[int, str]] = []
    trace: Traceback | None = None
    running: tuple[SourceFrame, ...] = ()
    used: set[int] = set()

    @property
    def frames(self) -> tuple[SourceFrame, ...]:
        """All Python frames, outermost first."""
        return self.trace.frames if self.trace else ()

    @property
    def python(self) -> SourceFrame | None:
        """The innermost frame of the user's own code; a server has none, then of the server's code."""
        own = innermost_user(self.frames)
        return own or next((frame for frame in reversed(self.frames) if not _is_framework(frame)), None)

    def sync_point(self, cpp_frames: Sequence[str] = ()) -> str | None:
        """What the report site is, if it can only have met an older error."""
        return is_sync_point(self.running, cpp_frames)

    @property
    def phase(self) -> str:
        """`` (met while autotuning)`` or the like; empty = nothing shows that code was being compiled."""
        phase = compile_phase(self.frames)
        return f" (met while {phase}, not while serving)" if phase else ""


Build = Callable[[Told[T], Around], Sequence[Record] | None]


def read_host_errors(
    frame: pl.DataFrame,
    fetch: Fetch,
    name: str,
    read: Callable[[str], T | None],
    build: Build[T],
) -> Reading:
    """Read the gated lines of one source.

    Args:
        frame: ``LINES`` of the witness, by line.
        fetch: Reads the lines around.
        name: Of the witness.
        read: Gives null for a text of another family; raises ``GrammarError`` for one of its own that it does
            not read.
        build: Makes the records of one error, the fault first; null = it was not ours after all. Adds the
            lines that it understood to ``Around.used``.
    """
    losses = Losses(name)
    reading = Reading()
    for told in by_process(read_distinct(frame, _bounded(read), losses)):
        _Process(told, fetch, build).run(reading)
    reading.records.sort(key=lambda record: record.line)
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    return reading


def _bounded(read: Callable[[str], T | None]) -> Callable[[str], T | None]:
    """Read texts that differ only in numbers once, if there are many: Lark takes 0.3 ms each."""
    shapes: dict[str, T | None] = {}
    seen = 0

    def run(text: str) -> T | None:
        nonlocal seen
        seen += 1
        shape = _shape(text)
        if seen > DISTINCT and shape in shapes:
            return shapes[shape]
        value = read(text)
        shapes.setdefault(shape, value)
        return value

    return run


@lru_cache(maxsize=4096)
def _shape(text: str) -> str:
    """The text without its numbers."""
    return _NUMBER.sub("0", text)


def fault_of(told: Told[T], around: Around, fault: FaultRecord) -> FaultRecord:
    """The record with what all host errors have in common: place in the file, writer, Python frame."""
    line = told.line
    block = [line.number, *around.used]
    return msgspec.structs.replace(
        fault,
        source=line.source,
        process=line.process,
        rank=line.rank,
        time_ns=line.time_ns,
        line=line.number,
        last_line=max(block),
        block_first=min(block),
        python=fault.python or around.python,
        text=fault.text + around.phase,
    )


def before_line(fetch: Fetch, line: Line, limit: int) -> list[Line]:
    """Lines of the process before ``line``; one record of a log can hold several lines of the same number."""
    rows = fetch.before(line.number + 1, line.process, limit)
    at = next((n for n, row in enumerate(rows) if _is_same(row, line)), None)
    return rows[:at] if at is not None else [row for row in rows if row.number < line.number]


def after_line(fetch: Fetch, line: Line, limit: int) -> list[Line]:
    """Lines of the process after ``line``, those of the same record first."""
    rows = fetch.before(line.number + 1, line.process, limit)
    at = next((n for n, row in enumerate(rows) if _is_same(row, line)), len(rows))
    return [*rows[at + 1 :], *fetch.after(line.number, line.process, limit)]


def _is_same(row: Line, line: Line) -> bool:
    return row.number == line.number and row.text == line.text


def flat(lines: Sequence[Line]) -> list[tuple[int, str]]:
    """Number and text; a text with several lines gives several."""
    return [(line.number, part) for line in lines for part in line.text.split("\n")]


class _Process(Generic[T]):
    """The errors of one process, in order."""

    def __init__(self, told: Sequence[Told[T]], fetch: Fetch, build: Build[T]) -> None:
        self.told = told
        self.fetch = fetch
        self.build = build
        self.faults: dict[int, FaultRecord] = {}
        self.others: list[Record] = []
        self.same: dict[str, int] = {}  # shape of a text -> number of the fault that said it last
        self.counts: dict[int, tuple[int, int]] = {}  # number of a fault -> repeats, last line of them

    def run(self, reading: Reading) -> None:
        """Read them all."""
        fetched = 0
        for one in self.told:
            shape = _shape(one.value.text)
            if fetched >= FETCHED and shape in self.same:
                at = self.same[shape]
                repeats, _ = self.counts.get(at, (0, 0))
                self.counts[at] = (repeats + 1, one.line.number)
                reading.parsed.append(one.line.number)
                continue
            fetched += 1
            around = self._around(one) if fetched <= FETCHED else Around()
            self._add(one, self.build(one, around), around, reading)
        for at, (repeats, last) in self.counts.items():
            fault = self.faults[at]
            self.faults[at] = msgspec.structs.replace(fault, count=fault.count + repeats, last_line=last)
        reading.records.extend([*self.faults.values(), *self.others])

    def _add(self, one: Told[T], records: Sequence[Record] | None, around: Around, reading: Reading) -> None:
        if records is None:
            return
        reading.parsed.append(one.line.number)
        reading.continuation.extend(around.used)
        for record in records:
            if isinstance(record, FaultRecord):
                self.same[_shape(one.value.text)] = len(self.faults)
                self.faults[len(self.faults)] = record
            else:
                self.others.append(record)

    def _around(self, one: Told[T]) -> Around:
        """Fetch what stands around; the lines of the traceback are used."""
        line = one.line
        above, below = without_tags(one.above, one.below)
        before = flat(before_line(self.fetch, line, BEFORE_LINES))
        before += [(line.number, text) for text in above]
        after = [(line.number, text) for text in below]
        after += flat(after_line(self.fetch, line, AFTER_LINES))
        around = Around(before=before, after=after)
        around.trace = traceback_before([text for _, text in before])
        if around.trace is not None:
            around.used = {before[n][0] for n in around.trace.lines}
            around.running = _running(around.trace, [before[n][1] for n in around.trace.lines])
        return around


def _running(trace: Traceback, lines: Sequence[str]) -> tuple[SourceFrame, ...]:
    """Frames from the innermost one that is no framework's inwards, its text cut to the marked part."""
    frames = trace.frames
    at = next((n for n in range(len(frames) - 1, -1, -1) if not _is_framework(frames[n])), 0)
    if not frames:
        return ()
    first = frames[at]
    marked = _marked(first, lines)
    return (msgspec.structs.replace(first, text=marked or first.text), *frames[at + 1 :])


def _is_framework(frame: SourceFrame) -> bool:
    """Code of PyTorch, Triton or Python itself, or generated: it launches for somebody."""
    if is_user_frame(frame):
        return False
    parts = frame.file.replace("\\", "/").split("/")
    at = next((n + 1 for n, part in enumerate(parts) if part in _PACKAGES), None)
    return at is None or parts[at].removesuffix(".py") in _FRAMEWORKS


def _marked(frame: SourceFrame, lines: Sequence[str]) -> str | None:
    """The part of the frame's source line above ``~~~^^^`` marks; null = there are none."""
    plain = msgspec.structs.replace(frame, text=None)
    for at in range(len(lines) - 3, -1, -1):
        if parse_frame(lines[at]) != plain:
            continue
        marks = lines[at + 2].rstrip()
        if not marks.strip() or marks.strip().strip("~^"):
            return None
        first = len(marks) - len(marks.lstrip())
        return lines[at + 1][first : len(marks)]
    return None


def without_tags(above: Sequence[str], below: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines of one record with several, without the ``[rank1]: `` that stands before its traceback."""
    head = next((text for text in above if HEADER in text), "")
    tag = head[: head.find(HEADER)]
    return [text.removeprefix(tag) for text in above], [text.removeprefix(tag) for text in below]


@cache
def gates_of_others(name: str) -> tuple[str, ...]:
    """Literals of all other witnesses: a text with one of them is theirs to explain."""
    return tuple(gate for witness in witnesses() if witness.name != name for gate in witness.gates)


def begins_error(text: str) -> bool:
    """Another traceback begins here: the text of the error before is over."""
    return HEADER in text

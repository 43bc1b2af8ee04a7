"""Lines in which servers and launchers say that something failed (formats.md 3.11, 3.21). No witness itself.

Such a line hands a failure on: it names a worker, a rank or a signal, and hardly ever the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Reading, Record
from analyzer.schema import FaultKind, Value
from analyzer.witness import Fetch
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault, read_forms, with_traceback

VIEWER_FRAME = " \t|\N{BOX DRAWINGS LIGHT VERTICAL}"  # what k9s puts around a line (formats.md 6)


class Signal(Value):
    """A signal that ended a process, as launchers number it, and what ``strsignal`` calls it."""

    number: int
    name: str
    words: str
    kind: FaultKind
    meaning: str


SIGNALS = (
    Signal(
        number=4, name="SIGILL", words="Illegal instruction", kind="host_abort", meaning="wrong CPU features"
    ),
    Signal(number=6, name="SIGABRT", words="Aborted", kind="host_abort", meaning="it aborted itself"),
    Signal(number=7, name="SIGBUS", words="Bus error", kind="host_segfault", meaning="often a full /dev/shm"),
    Signal(
        number=8, name="SIGFPE", words="Floating point exception", kind="host_abort", meaning="division by 0"
    ),
    Signal(
        number=9, name="SIGKILL", words="Killed", kind="host_abort", meaning="often for memory: see dmesg"
    ),
    Signal(
        number=11, name="SIGSEGV", words="Segmentation fault", kind="host_segfault", meaning="bad pointer"
    ),
    Signal(
        number=15, name="SIGTERM", words="Terminated", kind="peer_lost", meaning="somebody asked it to stop"
    ),
)
_BY_NUMBER = {signal.number: signal for signal in SIGNALS}
_BY_WORDS = {signal.words.lower(): signal for signal in SIGNALS}


def signal_of_exit(code: int) -> Signal | None:
    """The signal behind an exit code: -6 of Python, 134 of a shell; null = none."""
    return _BY_NUMBER.get(-code if code < 0 else code - 128)


def signal_of_words(words: str) -> Signal | None:
    """The signal behind ``Segmentation fault``, also in the frame of a viewer; null = other words."""
    return _BY_WORDS.get(words.strip(VIEWER_FRAME).lower().removesuffix(" (core dumped)"))


def signal_named(name: str) -> Signal | None:
    """The signal behind ``SIGABRT``."""
    return next((signal for signal in SIGNALS if signal.name == name), None)


Build = Callable[[Seen], Sequence[Record]]


def read_server(
    frame: pl.DataFrame, fetch: Fetch, name: str, forms: Sequence[Form], builds: Mapping[str, Build]
) -> Reading:
    """Read the gated lines of one source.

    Args:
        frame: ``LINES`` of the witness, by line.
        fetch: Reads the tracebacks that end in such a line.
        name: Of the witness and of its grammar.
        forms: See ``read_forms``. A gated line in which none begins is another program's.
        builds: What the texts of a rule mean; the first fault of a list gets the traceback above.
    """
    losses, reading = Losses(name), Reading()  # no number is blanked: a rank or a pid tells two lines apart
    fetched = 0
    for seen in read_forms(frame, name, forms, losses, blank=()):
        records = list(builds[seen.rule](seen))
        if records and isinstance(records[0], FaultRecord) and fetched < FETCHED:
            fetched += 1
            records[0], lines = with_traceback(records[0], fetch)
            reading.continuation.extend(lines)
        reading.records.extend(records)
        reading.parsed.extend(seen.lines)
    return settled(reading, frame, losses)


def settled(reading: Reading, frame: pl.DataFrame, losses: Losses) -> Reading:
    """The reading with each gated line counted once; those that nobody took are another program's."""
    reading.losses = losses.all()
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    lost = frame.filter(pl.col("text").is_in([loss.text for loss in reading.losses]))["line"].to_list()
    known = {*reading.parsed, *reading.continuation, *lost}
    reading.not_mine = [line for line in frame["line"].unique(maintain_order=True) if line not in known]
    return reading


def relayed(seen: Seen, name: str, kind: FaultKind, text: str | None = None) -> FaultRecord:
    """A failure that is handed on."""
    fault = build_fault(seen, name, kind, "host")
    return msgspec.structs.replace(fault, relayed=True, text=text or fault.text, pid=seen.pid)


def announced(seen: Seen, name: str, text: str | None = None) -> FaultRecord:
    """The head of a traceback: nothing is known where its end is missing."""
    return msgspec.structs.replace(relayed(seen, name, "unknown", text), announces=True)


def death(seen: Seen, name: str, signal: Signal, text: str | None = None) -> FaultRecord:
    """The end of a process by a signal, told by whoever started it."""
    said = f"{text or seen.text.strip()} ({signal.name}: {signal.meaning})"
    fault = build_fault(seen, name, signal.kind, "host", name=signal.name)
    return msgspec.structs.replace(fault, text=said, pid=seen.pid, relayed=signal.kind == "peer_lost")

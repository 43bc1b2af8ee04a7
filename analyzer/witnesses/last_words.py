"""What a process said before it ended, where nobody knows what it died of.

A death by signal, an exit code, the end of a container tell that a process is gone. If no witness has a fault
of it, the error-like lines right above its end are its probable cause: the first of the last group, unless
the process was still at work behind them. A process that tells its own end (a panic, an uncaught C++
exception, a compiler's fatal error) is taken at its word. A compiler's own message counts before the
exception that says that something did not compile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from analyzer.model import FaultRecord, Line, Reading
from analyzer.speech.answers import is_answer
from analyzer.speech.ends import GATES, exit_code, tells_own_end
from analyzer.speech.errors import goes_on, says_failure
from analyzer.tables.failure_words import kind_of_words
from analyzer.tables.kinds import DEATHS
from analyzer.witness import Fetch, Witness, is_unexplained
from analyzer.witnesses.distinct import lines_of
from analyzer.witnesses.host_error import gates_of_others

NAME = "last_words"
_ABOVE = 60  # lines of a process above its end: native frames, lists of what there is
_GROUP_GAP = 6  # lines between two errors of one group
_BUILD_ABOVE = 400  # lines of a compiler above the exception that it made
_FOLLOWING = 200  # lines of the process below a panic: other threads, goroutines
_MESSAGE_LINES = 2  # the message of a panic stands in the next line
_ENDS = 16  # of a source that are looked at; the first one without a cause counts
_SHOWN_CHARS = 400
# How compilers tell where: ``matmul.mojo:79:31: note: ...``, ``kernel.cu(12): error: ...``.
_DIAGNOSTIC = re.compile(
    r"^[^\s:()]+(?::[0-9]+){1,2}: (?:fatal )?(error|note): |^[^\s()]+\([0-9]+\): (error): "
)
_CONSTRAINT = re.compile(r"(?i)constraint failed|static[_ ]assert")
_BACKTRACE = re.compile(r"^\s*(?:#[0-9]+|at |frame #|\[[ 0-9]+\]|0x[0-9a-f]+|goroutine |[0-9]+: )")


def read_last(frame: pl.DataFrame, fetch: Fetch, others: Sequence[Reading]) -> Reading:
    """Read the ends of one source, told by others or here."""
    reading = Reading()
    told = [one for other in others for one in other.records if isinstance(one, FaultRecord)]
    own = [one for one in lines_of(frame) if tells_own_end(one.text) or exit_code(one.text)]
    if not any(map(_is_cause, told)):
        fault = _first_cause(own, told, fetch, others)
        if fault is not None:
            reading.records.append(fault)
            reading.parsed = [fault.line]
            reading.continuation = list(range(fault.line + 1, fault.last_line + 1))
    left = frame.filter(~pl.col("text").str.contains_any(list(gates_of_others(NAME))))
    reading.not_mine = sorted({*left["line"].to_list()} - {*reading.parsed, *reading.continuation})
    return reading


def _is_cause(fault: FaultRecord) -> bool:
    """Whether a fault says more than that somebody ended, or that something did not go."""
    if fault.advice or fault.relayed or fault.kind in DEATHS:
        return False
    return not (is_unexplained(fault) and fault.kind == "unknown" and fault.code is None)


def _first_cause(
    own: Sequence[Line], told: Sequence[FaultRecord], fetch: Fetch, others: Sequence[Reading]
) -> FaultRecord | None:
    raised = [one for one in told if is_unexplained(one)]
    if raised:
        return next((fault for one in raised if (fault := _of_build(one, fetch))), None)
    known = frozenset(line for other in others for line in (*other.parsed, *other.continuation))
    ends = [_end_of(one) for one in told if not one.advice]
    ends += [line for line in own if line.number not in known or exit_code(line.text)]
    causes = (_of_end(end, fetch, known) for end in sorted(ends, key=lambda end: end.number)[:_ENDS])
    return next((fault for fault in causes if fault is not None), None)


def _end_of(fault: FaultRecord) -> Line:
    """The line where another witness tells an end."""
    return Line(source=fault.source, number=fault.line, text=fault.text, process=fault.process)


def _of_end(end: Line, fetch: Fetch, known: frozenset[int]) -> FaultRecord | None:
    """The cause of an end; ``known``: lines that other witnesses understood."""
    if end.number in known or not tells_own_end(end.text):
        return _above(end, fetch, known)
    below = fetch.after(end.number, end.process, _FOLLOWING)
    if any(is_answer(line.text) for line in below):
        return None
    return _fault(end, [line for line in below[:_MESSAGE_LINES] if _is_message(end, line)])


def _is_message(end: Line, line: Line) -> bool:
    """Whether a line below the head of a panic or of ``terminate called`` says what it was about."""
    next_to = line.number - end.number <= _MESSAGE_LINES
    return next_to and bool(line.text.strip()) and not _BACKTRACE.search(line.text)


def _above(end: Line, fetch: Fetch, known: frozenset[int]) -> FaultRecord | None:
    """The first of the last group of errors above an end; null = there is none."""
    found: Line | None = None
    passed = 0
    for line in reversed(fetch.before(end.number, end.process, _ABOVE)):
        if not line.text.strip():
            continue
        passed += 1
        if _is_at_work(line) or (found is not None and passed > _GROUP_GAP):
            break
        if line.number not in known and _is_cause_told(line):
            found, passed = line, 0
    return None if found is None else _fault(found, ())


def _is_at_work(line: Line) -> bool:
    """Whether the process still worked then: what failed before it did not end it."""
    return is_answer(line.text) or goes_on(line.text, line.level)


def _is_cause_told(line: Line) -> bool:
    return exit_code(line.text) is None and says_failure(line.text.split("\n")[0], line.level)


def _of_build(raised: FaultRecord, fetch: Fetch) -> FaultRecord | None:
    """What a compiler said above or inside an exception; a condition that did not hold says most."""
    lines = fetch.before(raised.line, raised.process, _BUILD_ABOVE)
    kinds = [(line, found[1] or found[2]) for line in lines if (found := _DIAGNOSTIC.match(line.text))]
    if not any(kind == "error" for _, kind in kinds):
        return None
    failed = next((line for line, _ in kinds if _CONSTRAINT.search(line.text)), None)
    return _fault(failed or next(line for line, kind in kinds if kind == "error"), ())


def _fault(line: Line, more: Sequence[Line]) -> FaultRecord:
    text = " ".join([line.text.strip(), *(one.text.strip() for one in more)])
    return FaultRecord(
        source=line.source,
        process=line.process,
        line=line.number,
        last_line=max([line.number, *(one.number for one in more)]),
        block_first=line.number,
        text=text[:_SHOWN_CHARS],
        witness=NAME,
        kind=kind_of_words(text),
        site="host",
        rank=line.rank,
        time_ns=line.time_ns,
    )


WITNESS = Witness(name=NAME, gates=GATES, read_last=read_last, explains_ends=True)

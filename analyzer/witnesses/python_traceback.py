"""Exceptions that ended a process and that no other witness explains, so that a crash is never "no fault".

Only the last traceback of a process counts, and only if hardly anything follows it: a server logs many that
it survives. It explains nothing but itself (``faults.roles``): it is a root only where nothing else is known.

It is read after all others. Words that another witness looks for prove nothing (``exit status`` stands in the
error of any subprocess): explained is what another witness made a fault of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Line, Reading
from analyzer.parse.source_stack import CHAIN, HEADER, Traceback, innermost_user, parse_traceback
from analyzer.speech.answers import is_answer, is_refusal
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import lines_of
from analyzer.witnesses.host_error import after_line, before_line
from analyzer.witnesses.raised import build_end, headline, is_build, is_relay, kind_of

NAME = "python_traceback"
GATE = HEADER.removesuffix(":")
_BODY_LINES = 600  # a chain of three tracebacks of a compiled model
_AFTER_LINES = 40  # of a traceback and what comes of it
_LAST_LINES = 3  # what a dying process still prints: warnings of the resource tracker, a shell's word
_CHAIN_GAP = 3  # blank line, sentence, blank line
_MAX_CHAIN = 16
# Printed before tracebacks that end a thread or a task, not the process.
_SURVIVED = (
    "Exception in thread ",
    "Task exception was never retrieved",
    "Exception in callback",
)
_IGNORED = "Exception ignored in"  # a destructor or a hook at exit: what ended the program stands above
# asyncio's farewell for what nobody closed.
_UNCLOSED = ("ERROR:asyncio:Unclosed", "client_session: <", "connections: [", "connector: <")
# A logger says that the program ends, a server that nobody is left to answer, C++ that a thread was alone.
_SAYS_END = re.compile(
    r"(?i)\bshut(?:ting|s)? ?down\b|\bexit(?:s|ed|ing)\b|\bterminat(?:es|ed|ing)\b|\bstopping\b"
)
_UNANSWERED = re.compile(r'" 50[0-9] |^terminate called |\((?:core dumped)\)$')
_TASK = ("future: ", "task: ", "handle: ", "message: ", "source_traceback: ")  # asyncio, below its sentence
_TRACKER = "multiprocessing/resource_tracker.py"  # a helper process that cleans up, at exit
_DEATHS = frozenset({"host_abort", "host_segfault"})  # kinds of faults
_TOOL = "========= "  # compute-sanitizer's own lines
_TRAILER = "[RECORD] "  # what ``trace-analyze record`` adds when the command has ended
# The launcher's own exception says that a rank failed: what the rank raised stands above it.
_LAUNCHER = "ChildFailedError"
_NO_FAULT = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError", _LAUNCHER})
_RANK_RAISED = re.compile(r"\bexitcode *: 1\b")  # Python's code for an exception that nobody caught
_LAUNCHER_LINES = 60
# What a logger still says while its program ends.
_ENDING = re.compile(
    r"(?i)shut|finish|exit|clos|stop|clean|destroy|terminat|kill|join|goodbye|teardown|releas|free"
)


_FAREWELL = re.compile(
    r"(?i)\bshutting down\b|\bshutdown\b|\bfinished server process\b|\bexiting\b|\bstopping\b|\bgoodbye\b"
    r"|\bclean(?:ing|ed)?[ -]?up\b"
)


class _Block(msgspec.Struct):
    """A traceback with its chain. ``lines``: from the first header on, text of several lines in one."""

    first: Line
    lines: list[tuple[int, str]]
    trace: Traceback

    @property
    def numbers(self) -> list[int]:
        """Numbers of its lines."""
        return sorted({self.lines[n][0] for n in self.trace.lines})

    @property
    def raised(self) -> int:
        """Number of the exception's line; of the first one, if the exception is not in the log."""
        at = self.trace.exception_at
        return self.first.number if at is None else self.lines[at][0]


class _Others:
    """What the other witnesses read of the source."""

    def __init__(self, others: Sequence[Reading]) -> None:
        told = [
            (fault, other) for other in others for fault in other.records if isinstance(fault, FaultRecord)
        ]
        faults = [(fault, other) for fault, other in told if not _hands_on(fault)]
        self._deaths = {fault.line for fault, _ in told if fault.kind in _DEATHS}
        self._handed_on = {fault.line for fault, _ in told if _hands_on(fault)}
        self._ends = {end for fault, _ in faults for end in (fault.block_first, fault.line, fault.last_line)}
        self._folded = [(fault, set(other.parsed)) for fault, other in faults if fault.count > 1]

    def explain(self, block: _Block) -> bool:
        """Whether one of them made a fault of the exception, or of a cause in its chain.

        A death (``Aborted (core dumped)``) and what hands a failure on (``Scheduler hit an exception:``) say
        less than what was raised: they explain an exception only where their words are its own. A record
        that stands for many lines has the numbers of the first and last one only.
        """
        numbers = set(block.numbers)
        if block.raised in self._handed_on or not numbers.isdisjoint(self._ends):
            return True
        return any(
            any(fault.line <= number <= fault.last_line and number in parsed for number in numbers)
            for fault, parsed in self._folded
        )

    def is_end(self, number: int, text: str, raised: int) -> bool:
        """Whether a line below the exception tells of the end of its process."""
        return number > raised and (number in self._deaths or text.startswith(_TOOL))


def _hands_on(fault: FaultRecord) -> bool:
    """Whether it says only that something failed, and has no traceback of its own above it."""
    return fault.kind in _DEATHS or (fault.relayed and fault.block_first == fault.line)


def read_last(frame: pl.DataFrame, fetch: Fetch, others: Sequence[Reading]) -> Reading:
    """Read the headers of one source: the last one of each process."""
    reading = Reading()
    heads = frame.filter(pl.col("text").str.contains(GATE, literal=True))
    known = _Others(others)
    taken = set[int]()
    for _, rows in heads.group_by("process", maintain_order=True):
        block, launched = _last_of_process(rows, fetch)
        if block is None or known.explain(block):
            continue
        block = _without_death(block, known)
        reading.parsed.append(block.first.number)
        reading.continuation.extend(set(block.numbers) - {block.first.number})
        taken.update(block.numbers)
        fault = _fault(block) if launched or _is_last_word(block, fetch) else None
        if fault is not None:
            reading.records.append(fault)
    reading.not_mine = heads.filter(~pl.col("line").is_in(list(taken)))["line"].to_list()
    return reading


def _without_death(block: _Block, known: _Others) -> _Block:
    """The block, its exception's text up to what a shell or compute-sanitizer says of the end."""
    trace = block.trace
    end = next((n for n in trace.lines if known.is_end(*block.lines[n], block.raised)), None)
    if end is None:
        return block
    lines = tuple(n for n in trace.lines if n < end)
    said = [block.lines[n][1] for n in lines if block.lines[n][0] > block.raised]
    text = "\n".join([trace.text.split("\n", 1)[0], *said])
    trace = msgspec.structs.replace(trace, lines=lines, used=lines[-1] + 1, text=text)
    return msgspec.structs.replace(block, trace=trace)


def _last_of_process(rows: pl.DataFrame, fetch: Fetch) -> tuple[_Block | None, bool]:
    """The last traceback of a process, and whether a launcher says that its process ended with an exception.

    Where launcher and ranks write without tags, the launcher's own traceback comes last.
    """
    block = _last_block(rows.tail(_MAX_CHAIN), fetch)
    if block is None or not (block.trace.exception or "").endswith(_LAUNCHER):
        return block, False
    above = rows.filter(pl.col("line") < block.first.number).tail(_MAX_CHAIN)
    earlier = _last_block(above, fetch) if above.height else None
    if earlier is None:
        return block, False
    after = fetch.after(earlier.raised, earlier.first.process, _LAUNCHER_LINES)
    told = next((line.number for line in after if _RANK_RAISED.search(line.text)), None)
    if told is None:
        return block, False
    lines = [(number, text) for number, text in earlier.lines if number < told]
    trace = parse_traceback([text for _, text in lines])
    return (_Block(first=earlier.first, lines=lines, trace=trace), True) if trace else (block, False)


def _last_block(rows: pl.DataFrame, fetch: Fetch) -> _Block | None:
    """The last traceback of a process, from the first one of its chain on.

    What the helper of Python's multiprocessing raises at exit is of another process: the one before counts.
    """
    heads = list(lines_of(rows))
    while heads and (_is_of_tracker(heads[-1], fetch) or _is_ignored(heads[-1], fetch)):
        heads.pop()
    at = len(heads) - 1
    while at > 0 and _is_chained(heads[at], fetch):
        at -= 1
    if not heads or _is_survived(heads[at], fetch):
        return None
    first = heads[at]
    lines = [(first.number, text) for text in _from_header(first.text)]
    after = after_line(fetch, first, _BODY_LINES)
    if first.time_ns is None:  # a record with a time is no line of the exception's text
        after = list(takewhile(lambda line: line.time_ns is None, after))
    # nor is one of a logger without time, such as uvicorn's, or of another level
    after = list(takewhile(lambda line: line.level in {None, first.level}, after))
    after = list(takewhile(lambda line: not line.text.startswith(_TRAILER), after))
    lines += [(line.number, text) for line in after for text in line.text.split("\n")]
    trace = parse_traceback([text for _, text in lines])
    if trace is not None and is_build(trace.text):
        trace = _with_build(trace, lines)
    return _Block(first=first, lines=lines, trace=trace) if trace else None


def _with_build(trace: Traceback, lines: Sequence[tuple[int, str]]) -> Traceback:
    """The traceback with the whole output of the compiler in the text of its exception."""
    end = build_end([text for _, text in lines], trace.used)
    if end is None:
        return trace
    more = range(trace.used, end)
    text = "\n".join([trace.text, *(lines[n][1] for n in more)])
    return msgspec.structs.replace(trace, lines=(*trace.lines, *more), used=end, text=text)


def _from_header(text: str) -> list[str]:
    """The lines of a text from the last header in it on."""
    parts = text.split("\n")
    last = max((n for n, part in enumerate(parts) if GATE in part), default=0)
    tag = parts[last][: parts[last].find(GATE)] if len(parts) > 1 else ""
    return [part.removeprefix(tag) for part in parts[last:]]


def _is_chained(head: Line, fetch: Fetch) -> bool:
    before = [line.text.strip() for line in before_line(fetch, head, _CHAIN_GAP + 1)[-_CHAIN_GAP:]]
    return any(text in CHAIN for text in before)


def _is_of_tracker(head: Line, fetch: Fetch) -> bool:
    below = [line.text for line in after_line(fetch, head, 1)[:1]]
    return any(_TRACKER in text for text in [*head.text.split("\n")[1:2], *below][:1])


def _is_ignored(head: Line, fetch: Fetch) -> bool:
    before = before_line(fetch, head, 2)[-1:]
    return any(_IGNORED in text for text in (head.text, *(line.text for line in before)))


def _is_survived(head: Line, fetch: Fetch) -> bool:
    """Said of a thread, a task or a callback (asyncio names it in a line of its own), or as a warning.

    Not where the program says that it ends, or where nobody answers any more: then it was what served.
    """
    after = after_line(fetch, head, _AFTER_LINES)
    if head.level == "WARNING":
        return not any(_SAYS_END.search(line.text) for line in after)
    before = before_line(fetch, head, 3)[-2:]
    if before and not before[-1].text.startswith(_TASK):
        before = before[-1:]
    if any(_UNANSWERED.search(line.text) for line in after):
        return False
    return any(text in one for one in (head.text, *(line.text for line in before)) for text in _SURVIVED)


def _is_last_word(block: _Block, fetch: Fetch) -> bool:
    """Hardly anything of the process follows, and nothing with a time: a program that goes on logs it.

    Where the traceback itself is stamped, the container or the recorder stamps every line: times say nothing.
    Then a logger that goes on says it, unless it tells of the end.
    """
    last = block.lines[block.trace.used - 1][0]
    after = [
        line
        for line in fetch.after(last, block.first.process, _AFTER_LINES)
        if line.text.strip() and not line.text.startswith(_TRAILER)
    ]
    after = [line for line in _without_noise(after) if not _is_farewell(line)]
    if _is_uncaught(block, fetch):
        return True
    if any(is_answer(line.text) or is_refusal(line.text) for line in after):  # uvicorn prints no time
        return False
    stamped = block.first.time_ns is not None
    if stamped and block.first.level is None and any(_goes_on(line) for line in after):
        return False
    quiet = all(line.time_ns is None or _SAYS_END.search(line.text) for line in after)
    return len(after) <= _LAST_LINES and (stamped or quiet)


def _is_uncaught(block: _Block, fetch: Fetch) -> bool:
    """The interpreter's own report: from the top of a program, with no logger's sentence above it."""
    frames = block.trace.frames
    if block.first.level is not None or not frames or frames[0].function != "<module>":
        return False
    above = [line for line in before_line(fetch, block.first, 2)[-1:] if line.text.strip()]
    return not any(line.level not in {None, "INFO", "DEBUG"} or "rror" in line.text for line in above)


def _without_noise(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines without what Python, multiprocessing's helper and asyncio print at exit."""
    inside = False
    for at, line in enumerate(lines):
        following = lines[at + 1].text if at + 1 < len(lines) else ""
        if _IGNORED in line.text:
            inside = True
        elif GATE in line.text and not inside:
            inside = _TRACKER in following
        if not inside and not line.text.startswith(_UNCLOSED):
            yield line


def _is_farewell(line: Line) -> bool:
    """What a logger tells of an orderly end, however many steps it has: nothing goes on there."""
    return line.level in {"INFO", "DEBUG", "WARNING"} and _FAREWELL.search(line.text) is not None


def _goes_on(line: Line) -> bool:
    return line.level in {"INFO", "DEBUG"} and _ENDING.search(line.text) is None


def _fault(block: _Block) -> FaultRecord | None:
    """The exception; null = somebody stopped the program."""
    trace = block.trace
    name = (trace.exception or "").rpartition(".")[2]
    if name in _NO_FAULT:
        return None
    said = "a traceback that is cut off before its exception"
    if trace.exception is not None:
        said = trace.exception + (f": {headline(trace.text)}" if trace.text.strip() else "")
    return FaultRecord(
        source=block.first.source,
        process=block.first.process,
        line=block.raised,
        last_line=max(block.numbers),
        block_first=block.first.number,
        text=said,
        witness=NAME,
        kind=kind_of(name, trace.text),
        # Cut off before the exception: that it raised is seen, what it raised is not.
        site="host" if trace.exception is not None else "unknown",
        rank=block.first.rank,
        time_ns=block.first.time_ns,
        relayed=is_relay(trace.text),
        python=innermost_user(trace.frames) or (trace.frames[-1] if trace.frames else None),
    )


WITNESS = Witness(name=NAME, gates=(GATE,), read_last=read_last, grammar="source_stack.lark")

"""Exceptions that ended a process and that no other witness explains, so that a crash is never "no fault".

Only the last traceback of a process counts, and only if hardly anything follows it: a server logs many that
it survives. It explains nothing but itself (``faults.roles``): it is a root only where nothing else is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

import msgspec
import polars as pl

from analyzer.model import FaultRecord, Line, Reading
from analyzer.parse.answers import is_answer
from analyzer.parse.source_stack import CHAIN, HEADER, Traceback, innermost_user, parse_traceback
from analyzer.schema import FaultKind
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.host_error import after_line, before_line, gates_of_others

NAME = "python_traceback"
GATE = HEADER.removesuffix(":")
_BODY_LINES = 600  # a chain of three tracebacks of a compiled model
_LAST_LINES = 3  # what a dying process still prints: warnings of the resource tracker, a shell's word
_CHAIN_GAP = 3  # blank line, sentence, blank line
_MAX_CHAIN = 16
# Printed before tracebacks that end a thread or a task, not the process.
_SURVIVED = (
    "Exception in thread ",
    "Exception ignored in",
    "Task exception was never retrieved",
    "Exception in callback",
)
_TRAILER = "[RECORD] "  # what ``trace-analyze record`` adds when the command has ended
_NO_FAULT = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError"})
_PROBABILITIES = "probability tensor contains either "  # torch.multinomial looked at what others made
# The launcher's own exception says that a rank failed: what the rank raised stands above it.
_LAUNCHER = "ChildFailedError"
_RANK_RAISED = re.compile(r"\bexitcode *: 1\b")  # Python's code for an exception that nobody caught
_LAUNCHER_LINES = 60
# What PyTorch and MAX say where driver, device and build do not fit.
_SETUP = (
    "NVIDIA driver on your system is too old",
    "Found no NVIDIA driver on your system",
    "No CUDA GPUs are available",
    "No HIP GPUs are available",
    "not compiled with CUDA enabled",
    "support your current NVIDIA GPU driver",
)
_KINDS: dict[str, FaultKind] = {
    "MemoryError": "out_of_memory",
    "ModuleNotFoundError": "configuration",
    "ImportError": "configuration",
    "FileNotFoundError": "configuration",
    "PermissionError": "configuration",
    "NotADirectoryError": "configuration",
    "ConnectionResetError": "peer_lost",
    "ConnectionRefusedError": "peer_lost",
    "BrokenPipeError": "peer_lost",
    "TimeoutError": "hang_timeout",
}


# What a logger still says while its program ends.
_ENDING = re.compile(
    r"(?i)shut|finish|exit|clos|stop|clean|destroy|terminat|kill|join|goodbye|teardown|releas|free"
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


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the headers of one source: the last one of each process."""
    reading = Reading()
    heads = frame.filter(pl.col("text").str.contains(GATE, literal=True))
    literals = gates_of_others(NAME)
    taken = set[int]()
    for _, rows in heads.group_by("process", maintain_order=True):
        block, launched = _last_of_process(rows, fetch)
        if block is None or _is_explained(block, literals):
            continue
        reading.parsed.append(block.first.number)
        reading.continuation.extend(set(block.numbers) - {block.first.number})
        taken.update(block.numbers)
        fault = _fault(block) if launched or _is_last_word(block, fetch) else None
        if fault is not None:
            reading.records.append(fault)
    reading.not_mine = heads.filter(~pl.col("line").is_in(list(taken)))["line"].to_list()
    return reading


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
    raised_at = earlier.lines[earlier.trace.exception_at or 0][0]
    after = fetch.after(raised_at, earlier.first.process, _LAUNCHER_LINES)
    told = next((line.number for line in after if _RANK_RAISED.search(line.text)), None)
    if told is None:
        return block, False
    lines = [(number, text) for number, text in earlier.lines if number < told]
    trace = parse_traceback([text for _, text in lines])
    return (_Block(first=earlier.first, lines=lines, trace=trace), True) if trace else (block, False)


def _last_block(rows: pl.DataFrame, fetch: Fetch) -> _Block | None:
    """The last traceback of a process, from the first one of its chain on."""
    heads = list(_lines(rows))
    at = len(heads) - 1
    while at > 0 and _is_chained(heads[at], fetch):
        at -= 1
    if _is_survived(heads[at], fetch):
        return None
    first = heads[at]
    lines = [(first.number, text) for text in _from_header(first.text)]
    after = after_line(fetch, first, _BODY_LINES)
    if first.time_ns is None:  # a record with a time is no line of the exception's text
        after = list(takewhile(lambda line: line.time_ns is None, after))
    if first.level is None:  # nor is one of a logger without time, such as uvicorn's
        after = list(takewhile(lambda line: line.level is None, after))
    after = list(takewhile(lambda line: not line.text.startswith(_TRAILER), after))
    lines += [(line.number, text) for line in after for text in line.text.split("\n")]
    trace = parse_traceback([text for _, text in lines])
    return _Block(first=first, lines=lines, trace=trace) if trace else None


def _lines(rows: pl.DataFrame) -> Iterator[Line]:
    columns = rows.select("source", "line", "text", "process", "time_ns", "rank", "level")
    for source, number, text, process, time_ns, rank, level in columns.iter_rows():
        yield Line(
            source=source,
            number=number,
            text=text,
            process=process,
            time_ns=time_ns,
            rank=rank,
            level=level,
        )


def _from_header(text: str) -> list[str]:
    """The lines of a text from the last header in it on."""
    parts = text.split("\n")
    last = max((n for n, part in enumerate(parts) if GATE in part), default=0)
    tag = parts[last][: parts[last].find(GATE)] if len(parts) > 1 else ""
    return [part.removeprefix(tag) for part in parts[last:]]


def _is_chained(head: Line, fetch: Fetch) -> bool:
    before = [line.text.strip() for line in before_line(fetch, head, _CHAIN_GAP + 1)[-_CHAIN_GAP:]]
    return any(text in CHAIN for text in before)


def _is_survived(head: Line, fetch: Fetch) -> bool:
    before = before_line(fetch, head, 2)[-1:]
    return any(text in one for one in (head.text, *(line.text for line in before)) for text in _SURVIVED)


def _is_explained(block: _Block, literals: Sequence[str]) -> bool:
    """A line of it holds a literal of another witness: that one knows better what it means."""
    used = block.lines[: block.trace.used + 1]
    return any(literal in text for _, text in used for literal in literals)


def _is_last_word(block: _Block, fetch: Fetch) -> bool:
    """Hardly anything of the process follows, and nothing with a time: a program that goes on logs it.

    Where the traceback itself is stamped, the container or the recorder stamps every line: times say nothing.
    Then a logger that goes on says it, unless it tells of the end.
    """
    last = block.lines[block.trace.used - 1][0]
    after = [
        line
        for line in fetch.after(last, block.first.process, 2 * _LAST_LINES + 1)
        if line.text.strip() and not line.text.startswith(_TRAILER)
    ]
    if any(is_answer(line.text) for line in after):  # uvicorn prints no time
        return False
    stamped = block.first.time_ns is not None
    if stamped and block.first.level is None and any(_goes_on(line) for line in after):
        return False
    return len(after) <= _LAST_LINES and (stamped or all(line.time_ns is None for line in after))


def _goes_on(line: Line) -> bool:
    return line.level in {"INFO", "DEBUG"} and _ENDING.search(line.text) is None


def _fault(block: _Block) -> FaultRecord | None:
    """The exception; null = somebody stopped the program."""
    trace = block.trace
    name = (trace.exception or "").rpartition(".")[2]
    if name in _NO_FAULT:
        return None
    at = trace.exception_at
    line = block.lines[at][0] if at is not None else block.first.number
    said = "a traceback that is cut off before its exception"
    if trace.exception is not None:
        said = trace.exception + (f": {trace.text.splitlines()[0]}" if trace.text.strip() else "")
    return FaultRecord(
        source=block.first.source,
        process=block.first.process,
        line=line,
        last_line=max(block.numbers),
        block_first=block.first.number,
        text=said,
        witness=NAME,
        kind=_kind(name, trace.text),
        # Cut off before the exception: that it raised is seen, what it raised is not.
        site="host" if trace.exception is not None else "unknown",
        rank=block.first.rank,
        time_ns=block.first.time_ns,
        python=innermost_user(trace.frames) or (trace.frames[-1] if trace.frames else None),
    )


def _kind(name: str, text: str) -> FaultKind:
    """What an exception is about, by its words and by its name."""
    if _PROBABILITIES in text:
        return "nan"
    return "configuration" if any(words in text for words in _SETUP) else _KINDS.get(name, "unknown")


WITNESS = Witness(name=NAME, gates=(GATE,), read=read, grammar="source_stack.lark")

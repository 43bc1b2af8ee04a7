"""How processes die, in their own words and in those of shells and launchers (formats.md 3.21).

A death says which signal it was and, from Python's fault handler, where the host was. It is the root only
where nothing else failed before it in that process (``faults.roles``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.model import Advice, FaultRecord, Reading, Record, StopRequest
from analyzer.numbers import NumberError, hexadecimal, need_integer
from analyzer.parse.source_stack import innermost_user
from analyzer.schema import FaultKind
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.fault_handler import read_stack
from analyzer.witnesses.forms import FETCHED, Form, Seen, build_fault
from analyzer.witnesses.server_lines import (
    VIEWER_FRAME,
    death,
    read_server,
    signal_named,
    signal_of_exit,
    signal_of_words,
)

NAME = "process_death"
_WORDS = (
    "Segmentation fault|Aborted|IOT instruction|Killed|Bus error|Illegal instruction|Floating point exception"
    "|segmentation fault|illegal hardware instruction|bus error|floating point exception"  # as zsh says it
)
_PHRASES = "exit code|exitcode|exit status|exited with code|exited with status|Exit Code"
_FORMS = (
    Form(
        rule="others", begins=r"srun: error: |Exit Code:\s+-?[0-9]+[\s|\x{2502}]*$"
    ),  # supervisors, kubernetes
    Form(rule="fatal", begins=r"Fatal Python error: "),
    Form(rule="thread", begins=r"(?:Current thread|Thread) 0x[0-9a-fA-F]+ |Stack \(most recent call first\)"),
    Form(rule="modules", begins=r"Extension modules: "),
    Form(rule="program", begins=r"Program arguments: "),
    Form(
        rule="stack_dump",
        begins=r"(?:PLEASE|Please) submit a bug report to|Stack dump(?: without symbol names|:)",
    ),
    Form(
        rule="runtime",
        begins=r"terminate called (?:without an active exception|recursively)|double free or corruption"
        r"|free\(\): (?:invalid|double free)|corrupted size vs\. prev_size|malloc\(\): [a-z]"
        r"|munmap_chunk\(\): invalid pointer|\*\*\* stack smashing detected|!!!!!!! Segfault encountered !!",
    ),
    Form(
        rule="shell",
        begins=rf"^(?:[^:]+: line [0-9]+: +)?(?:\[[0-9]+\][ +-]*)?(?:[0-9]+ +)?(?:{_WORDS})"
        r"(?: +\(core dumped\)| *$| {2,})"
        r"|(?:Segmentation fault|Aborted|Bus error|Illegal instruction) +\(core dumped\)",
    ),
    # glog and Abseil: their handler of signals, inside the process
    Form(rule="caught", begins=r"^\s*\*\*\* SIG[A-Z]+ (?:\(@0x[0-9a-f]+\) )?received by PID [0-9]+ "),
    # Crashpad could not look at something: it ran because the process died, or as Mojo started it.
    Form(rule="handler", begins=r"close: Bad file descriptor \([0-9]|open /sys/\S+: No such file"),
    Form(rule="recorded", begins=r"^\[RECORD\] EXIT "),  # the trailer of trace-analyze record
    Form(rule="exit", begins=rf"^.*?(?:{_PHRASES})[ :=(']*(?:0x[0-9a-fA-F]|-?[0-9])"),
)
_CONTAINER = re.compile(r"\bexited with code 143\b")  # docker compose: its main process got SIGTERM
_WORD = 0xFFFFFFFF  # Python prints the same codes as negative numbers
_WINDOWS: dict[str, FaultKind] = {"0xc0000005": "host_segfault", "0xc0000409": "host_abort"}
# torchrun, vLLM and SGLang: their own witnesses read these.
_LAUNCHERS = ("local_rank", "(pid:", " died, exit code:", ") crashed with exit code ")
_ALIASES = {
    "iot instruction": "aborted",  # SIGIOT is SIGABRT
    "illegal hardware instruction": "illegal instruction",
}
_TOLD = frozenset({"was", "were", "is", "are", "when", "if", "has", "had", "can", "could", "may", "while"})
# A sentence about exit codes, or about those that did not come, tells of no death.
_EXPLAINS = frozenset({"means", "mean", "indicates", "signals", "is", "usually", "often", "stands"})
_DENIES = re.compile(r"(?i)\b(?:no|never|none|if)\b[^,;.:(]*$")  # in the clause of the code itself
_ASKED = frozenset({"SIGTERM", "SIGINT", "SIGHUP"})
_DUMP_LINES = 80  # a compiler's stack dump, with its frames
_SANITIZER_NOISE = "close: Bad file descriptor"  # beside it the dump is harmless (formats.md 3.10)
_NOISE_LINES = 40


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    reading = read_server(frame, fetch, NAME, _FORMS, _BUILDS)
    records: list[Record] = []
    dumps: dict[str, tuple[int, int]] = {}
    fetched = 0
    for record in sorted(reading.records, key=lambda one: one.line):
        if isinstance(record, FaultRecord) and record.name == _DUMP:
            _add_dump(record, records, dumps, fetch)
        elif isinstance(record, FaultRecord) and record.name == _FATAL and fetched < FETCHED:
            fetched += 1
            fault, lines = _with_stack(record, fetch)
            records.append(fault)
            reading.continuation.extend(lines)
        else:
            records.append(record)
    reading.records = [_without_mark(record) for record in records]
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.not_mine = sorted(set(reading.not_mine) - set(reading.continuation))
    return reading


_DUMP, _FATAL = "stack dump", "fatal"  # marks in ``name`` while the records are put together


def _without_mark(record: Record) -> Record:
    if isinstance(record, FaultRecord) and record.name in {_DUMP, _FATAL}:
        return msgspec.structs.replace(record, name=None)
    return record


def _fatal(seen: Seen) -> Sequence[Record]:
    """Python's fault handler; the stack of the thread that died follows."""
    signal = signal_of_words(seen.get("TEXT") or "")
    kind: FaultKind = signal.kind if signal else "host_abort"
    fault = build_fault(seen, NAME, kind, "host", name=_FATAL)
    return [msgspec.structs.replace(fault, text=fault.text.rstrip(VIEWER_FRAME))]


def _with_stack(fault: FaultRecord, fetch: Fetch) -> tuple[FaultRecord, list[int]]:
    """The fault with the frames of the thread that died, innermost one as its place."""
    stack = read_stack(fetch, fault.line, fault.process)
    if not stack.frames:
        return msgspec.structs.replace(fault, last_line=max([fault.last_line, *stack.lines])), stack.lines
    top = stack.frames[0]
    user = innermost_user(tuple(reversed(stack.frames)))
    where = f" in {top.function} ({top.file.rsplit('/', 1)[-1]}:{top.line})"
    last_line = max([fault.last_line, *stack.lines])
    done = msgspec.structs.replace(
        fault, text=fault.text + where, location=top, python=user, last_line=last_line
    )
    return done, stack.lines


def _stack_dump(seen: Seen) -> Sequence[Record]:
    return [build_fault(seen, NAME, "host_abort", "host", name=_DUMP)]


def _add_dump(
    record: FaultRecord, records: list[Record], dumps: dict[str, tuple[int, int]], fetch: Fetch
) -> None:
    """The several heads of one dump of LLVM or MLIR are one record.

    Args:
        record: The next head.
        records: What there is so far.
        dumps: Place in ``records`` and last line of the last dump of each process.
        fetch: Reads the lines before.
    """
    at, last_line = dumps.get(record.process, (len(records), -_DUMP_LINES - 1))
    if record.line - last_line > _DUMP_LINES:
        at = len(records)
        records.append(_noise(record) if _beside_noise(record, fetch) else record)
    elif isinstance(last := records[at], FaultRecord):
        more = f"{last.text}; {record.text}" if "Program arguments" in record.text else last.text
        records[at] = msgspec.structs.replace(last, last_line=record.last_line, text=more)
    dumps[record.process] = at, record.last_line


def _beside_noise(record: FaultRecord, fetch: Fetch) -> bool:
    near = fetch.before(record.line, record.process, _NOISE_LINES)
    return any(_SANITIZER_NOISE in line.text for line in near)


def _noise(record: FaultRecord) -> Advice:
    text = (
        "a stack dump at the start under compute-sanitizer is harmless (its injection meets Mojo's start-up)"
    )
    return Advice(source=record.source, line=record.line, text=text)


def _runtime(seen: Seen) -> Sequence[Record]:
    if "Segfault" in seen.text:  # PyTorch's own handler, before the stack
        return [build_fault(seen, NAME, "host_segfault", "host", name="SIGSEGV")]
    return [build_fault(seen, NAME, "host_abort", "host", name="SIGABRT")]


def _caught(seen: Seen) -> Sequence[Record]:
    """The process wrote it itself; the check or the pointer that was bad stands above or is not told."""
    signal = signal_named(seen.get("SIGNAL") or "")
    if signal is None or signal.name in _ASKED:
        return []
    return [msgspec.structs.replace(death(seen, NAME, signal), pid=seen.number("PID"))]


def _shell(seen: Seen) -> Sequence[Record]:
    """A shell names the job and its signal, after whatever the job itself had to say."""
    if (seen.get("TEXT") or "").split(" ", 1)[0].lower() in _TOLD:
        return []
    words = (seen.get("WORDS") or "").lower()
    signal = signal_of_words(_ALIASES.get(words, words))
    fault = death(seen, NAME, signal) if signal else build_fault(seen, NAME, "host_abort", "host")
    return [msgspec.structs.replace(fault, pid=seen.number("PID") or fault.pid, relayed=True)]


def _recorded(seen: Seen) -> Sequence[Record]:
    """The recorder saw which signal ended the command; who asked it to end (SIGTERM, SIGINT) is no death."""
    signal = signal_named(seen.get("SIGNAL") or "")
    if signal is None or signal.name in _ASKED:
        return []
    return [msgspec.structs.replace(death(seen, NAME, signal), relayed=True)]


def _exit(seen: Seen) -> Sequence[Record]:
    """An exit code that tells a signal; other codes say nothing that others do not say better."""
    status = (seen.get("STATUS") or "").lower()
    if any(word in seen.text for word in _LAUNCHERS) or _is_about(seen):
        return []
    number = hexadecimal(status) if status.startswith("0x") else need_integer(status)
    if number is None:
        raise NumberError(status)
    if (kind := _WINDOWS.get(hex(number & _WORD))) is not None:
        return [build_fault(seen, NAME, kind, "host", name=hex(number & _WORD))]
    signal = signal_of_exit(number)
    if signal is None:
        return []
    asked = StopRequest() if _CONTAINER.search(seen.text) else None
    return [msgspec.structs.replace(death(seen, NAME, signal), relayed=True, detail=asked)]


def _is_about(seen: Seen) -> bool:
    """Whether the text explains an exit code (``exit code 137 means ...``) or says that there was none."""
    before, _, behind = seen.text.partition(seen.get("STATUS") or "")
    following = behind.strip("'\") ,:").lower().split(maxsplit=1)[:1]
    return bool(_EXPLAINS & set(following) or _DENIES.search(before))


def _nothing(seen: Seen) -> Sequence[Record]:  # noqa: ARG001  (belongs to a block)
    return []


_BUILDS = {
    "fatal": _fatal,
    "thread": _nothing,
    "modules": _nothing,
    "program": _stack_dump,
    "stack_dump": _stack_dump,
    "runtime": _runtime,
    "caught": _caught,
    "shell": _shell,
    "recorded": _recorded,
    "exit": _exit,
    "handler": _nothing,
    "others": _nothing,
}
WITNESS = Witness(
    name=NAME,
    gates=(
        "Fatal Python error: ",
        "(most recent call first)",
        "Extension modules: ",
        "submit a bug report to",
        "Stack dump",
        "Program arguments: ",
        "terminate called without",
        "terminate called recursively",
        "double free or corruption",
        "free(): ",
        "malloc(): ",
        "munmap_chunk(): ",
        "corrupted size vs",
        "stack smashing detected",
        "Segfault encountered",
        " received by PID ",
        "Segmentation fault",
        "(core dumped)",
        "Aborted",
        "Killed",
        "Bus error",
        "Illegal instruction",
        "IOT instruction",
        "exit code",
        "exitcode",
        "exit status",
        "exited with code",
        "exited with status",
        "Exit Code",
        "close: Bad file descriptor (",
        "/cpufreq/scaling_",
        "[RECORD] EXIT ",
    ),
    read=read,
    grammar="process_death.lark",
)

"""Python stacks in logs: tracebacks, and the ``Source Traceback:`` section of MAX errors.

Other writers print between the lines of a stack (formats.md 7). A line that fits nothing is skipped, up to
``MAX_FOREIGN`` in a row; more than that ends the stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.numbers import is_digits, need_integer
from analyzer.schema import SourceFrame, Value

HEADER = "Traceback (most recent call last):"
MAX_FOREIGN = 64  # an op record with source tracebacks of another writer is 20 to 50 lines (observed.md 2)
MAX_TEXT_LINES = 20  # longest exception text taken; what follows belongs to whoever understands it
CHAIN = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_NOTE_START, _NOTE_END = "Note: ", "distinct Python source locations contributed"
_REPEATED = "[Previous line repeated"
_END = "RuntimeError: end"  # stands for the exception's line, which may have text glued before it
_SOURCE_INDENT = "    "  # source lines and markers stand four deep, frames two
_LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "FATAL", "TRACE", "NOTSET", "Note"})
_EXCEPTION_ENDS = ("Error", "Exception", "Warning", "Exit", "Interrupt", "Iteration", "Group")
_LIBRARY_FOLDERS = frozenset({"site-packages", "dist-packages"})


class Traceback(Value):
    """A traceback, the last one of a chain.

    ``frames``: outermost first. ``exception`` is null if the log ends before it; ``text`` may have several
    lines. ``lines``: positions (in what was given) of the lines that belong to it, the chain included;
    ``used`` = position after the last of them. ``exception_at``: position of the exception's line.
    ``causes``: the tracebacks before it in the chain, first one first.
    """

    frames: tuple[SourceFrame, ...]
    exception: str | None
    text: str
    used: int
    lines: tuple[int, ...]
    exception_at: int | None = None
    causes: tuple[Traceback, ...] = ()


class Stacks(Value):
    """The stacks of a ``Source Traceback:`` section and the positions of the lines they took.

    ``closed`` is false if the lines ended before the section did.
    """

    stacks: tuple[tuple[SourceFrame, ...], ...]
    lines: tuple[int, ...]
    closed: bool


class _Frames(msgspec.Struct):
    """Frames as they are collected: the source line of a frame follows on a line of its own."""

    frames: list[SourceFrame] = []

    def take(self, line: str) -> bool:
        """Add the line if it is a frame, the source of the last frame, or marks under it."""
        frame = parse_frame(line)
        if frame is not None:
            self.frames.append(frame)
            return True
        if not self.frames or not line.startswith(_SOURCE_INDENT):
            return bool(self.frames) and _REPEATED in line
        text = line.strip()
        if text and self.frames[-1].text is None and text.strip("~^ "):
            self.frames[-1] = msgspec.structs.replace(self.frames[-1], text=text)
        return bool(text)


@lru_cache(maxsize=4096)
def parse_frame(line: str) -> SourceFrame | None:
    """``File "x", line 26, in build`` as a frame; null = not a frame line. No function is ``''``."""
    if not line.lstrip().startswith('File "'):
        return None
    try:
        tokens = [token_text(token) for token in parse("source_stack", line.rstrip(), "frame").children]  # type: ignore[arg-type]
        path, number, function = tokens[0], need_integer(tokens[1]), tokens[2:]
    except GrammarError:
        return None
    return SourceFrame(file=path[1:-1], line=number, function=function[0] if function else "")


@lru_cache(maxsize=1024)
def parse_exception(line: str) -> tuple[str, str] | None:
    """``ValueError: text`` as (name, text); null = not the line that ends a traceback."""
    if not line[:1].isalpha() and not line.startswith("_"):
        return None
    try:
        tokens = [token_text(token) for token in parse("source_stack", line.rstrip(), "exception").children]  # type: ignore[arg-type]
    except GrammarError:
        return None
    name, *text = tokens
    last = name.rpartition(".")[2]
    if last in _LEVELS or (last == name and not name[0].isupper()):
        return None
    return name, text[0] if text else ""


def parse_stacks(lines: Sequence[str]) -> tuple[tuple[SourceFrame, ...], ...]:
    """Stacks of a ``Source Traceback:`` section (observed.md 10).

    Args:
        lines: The lines after the title. Stacks are separated by blank lines; the section ends at
            ``Note: N distinct Python source locations ...`` or at the first line that fits nothing.

    Returns:
        One tuple of frames a source location, outermost frame first.
    """
    return read_stacks(lines, foreign=0).stacks


def read_stacks(lines: Sequence[str], foreign: int = MAX_FOREIGN) -> Stacks:
    """As ``parse_stacks``, with lines of other writers in between.

    Args:
        lines: The lines after the title.
        foreign: How many lines in a row may fit nothing.
    """
    stacks: list[_Frames] = [_Frames()]
    taken: list[int] = []
    skipped = blanks = 0
    closed = False
    for position, line in enumerate(lines):
        if _is_note(line):
            taken.append(position)
            closed = True
        if closed:
            break
        if not line.strip():
            blanks += 1
            if stacks[-1].frames:
                stacks.append(_Frames())
        elif blanks < 2 and stacks[-1].take(line):
            taken.append(position)
            skipped = blanks = 0
        else:
            skipped += 1
            closed = skipped > foreign or HEADER in line
    found = tuple(tuple(stack.frames) for stack in stacks if stack.frames)
    return Stacks(stacks=found, lines=tuple(taken), closed=closed)


def parse_traceback(lines: Sequence[str]) -> Traceback | None:
    """A ``Traceback (most recent call last):`` block, with what it is chained to.

    Args:
        lines: From the line of the header on. The header may stand behind other text (a progress bar) or
            behind the marks of an exception group.

    Returns:
        The last traceback of the chain; null = the first line has no header.
    """
    if not lines or HEADER not in lines[0]:
        return None
    grouped = lines[0].lstrip().startswith("+ Exception Group")
    plain = [_without_group_marks(line) for line in lines] if grouped else lines
    chain = [_read_one(plain, 0)]
    while (header := _next_in_chain(plain, chain[-1].used)) is not None:
        chain.append(_read_one(plain, header))
    numbers = tuple(sorted({n for one in chain for n in one.lines}))
    return msgspec.structs.replace(chain[-1], causes=tuple(chain[:-1]), lines=numbers)


def traceback_before(before: Sequence[str]) -> Traceback | None:
    """The traceback that the line after ``before`` ends; null = none does.

    Args:
        before: Lines before an exception's line, in file order. Their start may cut the traceback.

    Returns:
        Its positions count in ``before``; ``exception`` and ``text`` say nothing.
    """
    first = _walk_back(before)
    if first is None:
        return None
    cut = HEADER not in before[first]
    block = [*([HEADER] if cut else []), *before[first:], _END]
    read = parse_traceback(block)
    if read is None or read.exception_at != len(block) - 1:
        return None
    shift = first - cut
    lines = tuple(n + shift for n in read.lines if first <= n + shift < len(before))
    return msgspec.structs.replace(read, lines=lines, used=len(before), exception_at=None)


# Our own code inside a watched program, where it runs from a checkout.
OWN_HOOKS = ("analyzer/record/ops/", "analyzer/replay/hooks/")


def is_user_frame(frame: SourceFrame) -> bool:
    """Not in an installed package, not in Python itself, not generated by the interpreter."""
    path = frame.file.replace("\\", "/")
    parts = path.split("/")
    if any(hook in path for hook in OWN_HOOKS):
        return False
    if frame.file.startswith("<") or _LIBRARY_FOLDERS.intersection(parts) or _is_generated(parts):
        return False
    return not any(
        a in {"lib", "lib64"} and b.startswith("python") and is_digits(b[-1]) for a, b in pairwise(parts)
    )


def innermost_user(frames: Sequence[SourceFrame]) -> SourceFrame | None:
    """The last frame of the user's own code; null = none."""
    return next((frame for frame in reversed(frames) if is_user_frame(frame)), None)


def _is_generated(parts: list[str]) -> bool:
    """Inductor's cache: ``cs/cscihz3f...zy.py``, a folder named by letters 2 and 3 of a long hash."""
    stem = parts[-1].removesuffix(".py")
    return len(parts) > 1 and len(stem) > 40 and stem.isalnum() and parts[-2] == stem[1:3]


def _is_note(line: str) -> bool:
    return line.lstrip().startswith(_NOTE_START) and _NOTE_END in line


def _without_group_marks(line: str) -> str:
    """The line without the ``  | `` that an exception group puts before its lines."""
    body = line.lstrip()
    return body[2:] if body.startswith(("| ", "+ ")) else line


def _read_one(lines: Sequence[str], header: int) -> Traceback:
    """One traceback, from its header to the end of its exception's text."""
    frames = _Frames()
    taken = [header]
    skipped = 0
    for position in range(header + 1, len(lines)):
        line = lines[position]
        if frames.take(line):
            taken.append(position)
            skipped = 0
            continue
        raised = parse_exception(line)
        if raised and (not skipped or raised[0].endswith(_EXCEPTION_ENDS) or "." in raised[0]):
            more = list(_text_lines(lines, position + 1))
            return Traceback(
                frames=tuple(frames.frames),
                exception=raised[0],
                text="\n".join([raised[1], *(lines[n] for n in more)]),
                used=(more[-1] if more else position) + 1,
                lines=(*taken, position, *more),
                exception_at=position,
            )
        skipped += 1
        if skipped > MAX_FOREIGN or HEADER in line:
            break
    end = taken[-1] + 1
    return Traceback(frames=tuple(frames.frames), exception=None, text="", used=end, lines=tuple(taken))


def _text_lines(lines: Sequence[str], first: int) -> Iterator[int]:
    """Positions of the further lines of an exception's text: up to a blank line or a log record."""
    for position in range(first, min(first + MAX_TEXT_LINES, len(lines))):
        line = lines[position]
        begins_record = line.startswith("[") or (is_digits(line[:2]) and line[2:3] in {":", "-", "/"})
        if not line.strip() or begins_record or is_digits(line[:4]) or HEADER in line or line in CHAIN:
            return
        yield position


def _next_in_chain(lines: Sequence[str], after: int) -> int | None:
    """Position of the header that is chained to the traceback that ends before ``after``."""
    linked = False
    for position in range(after, min(after + MAX_FOREIGN, len(lines))):
        line = lines[position].strip()
        linked = linked or line in CHAIN
        if HEADER in line:
            return position if linked else None
    return None


def _walk_back(before: Sequence[str]) -> int | None:
    first: int | None = None
    skipped = 0
    for position in range(len(before) - 1, -1, -1):
        line = before[position]
        if HEADER in line:
            first, skipped = position, 0
            above = [text for text in before[max(0, position - MAX_FOREIGN) : position] if text.strip()]
            if not above or above[-1].strip() not in CHAIN:
                return first
        elif parse_frame(line) or (first is None and line.startswith(_SOURCE_INDENT)):
            first = position if parse_frame(line) else first
            skipped = 0
        else:
            skipped += 1
            if skipped > MAX_FOREIGN:
                return first
    return first

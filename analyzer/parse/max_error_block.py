"""The body of a MAX kernel error: what follows ``An error occurred in kernel named ...`` (observed.md 10).

    <cause>, one or more lines
    To get more accurate error information, ...      (not always; one to three times)

    Fusion info:
      <tree>

    Source Traceback:                                (or a line that tells how to get it)
      <stacks>

Other writers print between these lines. What fits nothing is skipped, up to ``MAX_FOREIGN`` in a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.grammar import GrammarError
from analyzer.model import FusionNode
from analyzer.numbers import is_digits
from analyzer.parse.fusion_tree import parse_fusion_tree
from analyzer.parse.max_error_text import CAUSES, ErrorText, read_text
from analyzer.parse.source_stack import HEADER, MAX_FOREIGN, read_stacks
from analyzer.schema import SourceFrame, Value

FUSION, SOURCES = "Fusion info:", "Source Traceback:"
MAX_CAUSE_LINES = 20  # longest raised text taken
_STACK_ADVICE = "stack trace was not collected. Enable stack trace collection"
# What other writers of a MAX process print: op records and their bodies, the executor's messages.
_OTHER_WRITERS = ("[OP] ", "[fused from ", ";target=", "INFO::: ", "DEBUG::: ", "WARNING::: ", "  ")
_FRAME_SUFFIXES = (".py", ".mojo")


class Block(Value):
    """A body, read. Numbers are positions in the lines given.

    ``cause``: position and text of a cause of a known form; null = a text that host code raised, or none
    (``cause_lines`` empty). ``kernel``: a further ``kernel named`` line before the cause names the inner
    one. ``closed`` is false if the lines ended before the block did.
    """

    cause: tuple[int, ErrorText] | None = None
    cause_lines: tuple[int, ...] = ()
    kernel: str | None = None
    hints: tuple[tuple[int, ErrorText], ...] = ()
    fusion: FusionNode | None = None
    fusion_error: tuple[int, str] | None = None
    stacks: tuple[tuple[SourceFrame, ...], ...] = ()
    sources_at: int | None = None
    unread: tuple[tuple[int, str], ...] = ()
    lines: tuple[int, ...] = ()
    closed: bool = True


def read_block(lines: Sequence[str]) -> Block:
    """Read a body.

    Args:
        lines: The lines after the one that names the kernel (or the entry point, if that is all).
    """
    reader = _Reader(lines)
    reader.run()
    return reader.block()


class _Reader:
    """Goes through the sections; each method takes lines from ``at`` on."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0
        self.cause: tuple[int, ErrorText] | None = None
        self.raised: list[int] = []
        self.kernel: str | None = None
        self.hints: list[tuple[int, ErrorText]] = []
        self.tree: list[int] = []
        self.stacks: tuple[tuple[SourceFrame, ...], ...] = ()
        self.sources_at: int | None = None
        self.unread: list[tuple[int, str]] = []
        self.taken: list[int] = []
        self.closed = False

    def run(self) -> None:
        """Section by section, until something else begins or nothing fits any more."""
        skipped = 0
        in_cause = True
        while self.at < len(self.lines) and not self.closed:
            line = self.lines[self.at]
            if not line.strip():
                in_cause = in_cause and not self.raised and self.cause is None
            elif line.strip() == FUSION:
                in_cause = False
                self._tree()
                skipped = 0
            elif line.strip() == SOURCES:
                self._sources()
            elif self._known(line) or (in_cause and self._raised(line)):
                skipped = 0
            else:
                skipped += 1
                if skipped > MAX_FOREIGN or HEADER in line:
                    self.closed = True
            self.at += 1

    def _known(self, line: str) -> bool:
        """Take a text of a known form; a new head closes the block."""
        try:
            text = read_text(line)
        except GrammarError as error:
            self.unread.append((self.at, str(error)))
            return False
        if text is None:
            known = _STACK_ADVICE in line
        elif text.role in {"entry", "kernel"}:
            self.closed = text.role == "entry" or self.cause is not None or bool(self.raised)
            self.kernel = None if self.closed else text.name
            known = not self.closed
        elif text.role in CAUSES:
            known = self.cause is None and not self.tree and self.sources_at is None
            self.cause = (self.at, text) if known else self.cause
        else:
            known = True
            self.hints.append((self.at, text))
        if known:
            self.taken.append(self.at)
        return known

    def _raised(self, line: str) -> bool:
        """Take a line of a text that host code raised."""
        if self.cause is not None or len(self.raised) >= MAX_CAUSE_LINES or HEADER in line:
            return False
        if is_other_writers(line) and not (self.raised and line.startswith("  ")):
            return False
        self.raised.append(self.at)
        return True

    def _tree(self) -> None:
        """Take the fusion tree: up to a blank line, its lines are indented."""
        self.taken.append(self.at)
        skipped = 0
        for position in range(self.at + 1, len(self.lines)):
            line = self.lines[position]
            skipped = 0 if line.startswith("  ") else skipped + 1
            if not line.strip() or skipped > MAX_FOREIGN or line.strip() == SOURCES:
                break
            self.at = position
            if not skipped:
                self.tree.append(position)

    def _sources(self) -> None:
        """Take the stacks; nothing of the block follows them."""
        self.sources_at = self.at
        rest = self.lines[self.at + 1 :]
        read = read_stacks(rest)
        self.stacks = read.stacks
        self.taken += [self.at, *(self.at + 1 + n for n in read.lines)]
        self.closed = read.closed
        self.at = len(self.lines)

    def block(self) -> Block:
        """What was read."""
        fusion, fusion_error = None, None
        if self.tree:
            try:
                fusion = parse_fusion_tree([self.lines[n] for n in self.tree])
            except GrammarError as error:
                fusion_error = (self.tree[0], str(error))
        causes = [self.cause[0]] if self.cause else self.raised
        taken = {*self.taken, *causes, *(self.tree if fusion else ())}
        last = max(taken, default=-1)
        return Block(
            cause=self.cause,
            cause_lines=tuple(causes),
            kernel=self.kernel,
            hints=tuple(self.hints),
            fusion=fusion,
            fusion_error=fusion_error,
            stacks=self.stacks,
            sources_at=self.sources_at,
            unread=tuple(self.unread),
            lines=tuple(n for n in range(last + 1) if n in taken or not self.lines[n].strip()),
            closed=self.closed,
        )


def is_other_writers(line: str) -> bool:
    """An op record, a line of its body (``srv/app/max_cases.py:57:<module>``), an executor's message."""
    if line.startswith(_OTHER_WRITERS):
        return True
    path, _, rest = line.partition(":")
    number, _, function = rest.partition(":")
    return path.endswith(_FRAME_SUFFIXES) and is_digits(number) and bool(function) and " " not in function

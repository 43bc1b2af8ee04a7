"""What a witness is, and how the witnesses are found (the folder is walked; no list to edit)."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, Protocol

import polars as pl

from analyzer.grammar import GrammarError
from analyzer.model import FaultRecord, Line, Reading
from analyzer.schema import Loss, Value

MAX_REFUSED = 20  # lines of a witness and source that are looked for one by one
_SHOWN_CHARS = 300

Vendor = Literal["nvidia", "amd"]


class Fetch(Protocol):
    """Reads lines around a gated line, envelope taken off, of one process of one source."""

    def after(self, line: int, process: str, limit: int) -> list[Line]:
        """Up to ``limit`` lines of ``process`` that follow ``line`` (exclusive), in order."""

    def before(self, line: int, process: str, limit: int) -> list[Line]:
        """Up to ``limit`` lines of ``process`` that precede ``line`` (exclusive), in file order."""

    def matching(self, literals: Sequence[str]) -> pl.DataFrame:
        """All lines of the source that hold a literal: line u32, text str, process str, by line.

        A second pass over the file: only for witnesses whose gate was passed, and whose bodies are too many
        to fetch one by one.
        """


def _read_nothing(frame: pl.DataFrame, fetch: Fetch) -> Reading:  # noqa: ARG001
    return Reading()


class Witness(Value):
    """A program whose output we can read.

    ``gates``: literals for the one vectorised gate over raw lines; no regular expressions. A literal
    must survive JSON escaping and colour codes, so it holds no quotes, backslashes or non-ASCII. A line
    without any space is never offered (such lines are the frames of op bodies).
    Prefer a literal that only this witness prints: a gated text that the reader does not understand
    is a counted ``Loss``.
    ``read``: takes the ``LINES`` frame (``model``) of this witness's gated lines of ONE source, ordered
    by line, and a ``Fetch``; gives a ``Reading``. Only distinct texts go through Lark.
    ``read_last``: as ``read``, after all other witnesses, and takes what they read of the source as well: for
    what counts only where nobody knows better. A witness has one of the two.

    What others need to know of it is declared here; nobody else asks for a witness by its name:

    ``program``: whose text it is, a word of ``tables.programs`` or of a program that has no row there; null =
    any program's (the device's, the host's). ``vendor``: whose devices it speaks of, null = any.
    ``device_side``: it looks at the device itself, and can name the kernel that faulted. ``tool``: a program
    that was started beside the failing one to look so. ``usually``: the program it mostly stands in, which is
    believed where nothing else in the log shows one. ``collective``: it watches collectives of several ranks.
    ``launcher``: it starts the processes of a job and tells how they ended.
    ``value_printer``: it prints tensor values, from which faults are concluded.
    ``bulk``: it prints a line for each launch, thread or step and is read in columns: no limit on its texts.
    ``explains_ends``: it says what a process probably died of, from its lines before that: read behind those
    who say last what they know, also where none of its gates was passed. It is never more than likely.
    ``mode``: the field of ``schema.Modes`` that its text shows to be on.
    """

    name: str
    gates: tuple[str, ...]
    read: Callable[[pl.DataFrame, Fetch], Reading] = _read_nothing
    read_last: Callable[[pl.DataFrame, Fetch, Sequence[Reading]], Reading] | None = None
    grammar: str | None = None
    program: str | None = None
    vendor: Vendor | None = None
    device_side: bool = False
    tool: bool = False
    usually: str | None = None
    collective: bool = False
    launcher: bool = False
    value_printer: bool = False
    bulk: bool = False
    explains_ends: bool = False
    mode: str | None = None

    def run(self, frame: pl.DataFrame, fetch: Fetch, others: Sequence[Reading] = ()) -> Reading:
        """Read the gated lines of one source; ``others``: what the other witnesses read of it.

        A ``GrammarError`` that a reader lets through costs the line that it comes from, as a ``Loss``, never
        the analysis. Where ``MAX_REFUSED`` lines were not enough, the rest is lost as well, and counted.
        """
        losses: list[Loss] = []
        left = frame
        while self.explains_ends or not left.is_empty():
            reading, error = self._tried(left, fetch, others)
            if reading is not None:
                reading.losses = [*reading.losses, *losses]
                return reading
            at = self._refused_at(left, fetch, others)
            refused = left.slice(at, 1) if len(losses) < MAX_REFUSED else left
            losses.extend(self._losses(refused, str(error)))
            left = left.filter(~pl.col("line").is_in(refused["line"].implode()))
        return Reading(losses=losses)

    def _tried(
        self, frame: pl.DataFrame, fetch: Fetch, others: Sequence[Reading]
    ) -> tuple[Reading | None, GrammarError | None]:
        try:
            if self.read_last is not None:
                return self.read_last(frame, fetch, others), None
            return self.read(frame, fetch), None
        except GrammarError as error:
            return None, error

    def _refused_at(self, frame: pl.DataFrame, fetch: Fetch, others: Sequence[Reading]) -> int:
        """Row of the first line with which the lines up to it cannot be read; found by halving."""
        good, bad = 0, frame.height
        while bad - good > 1:
            middle = (good + bad) // 2
            readable = self._tried(frame.head(middle), fetch, others)[0] is not None
            good, bad = (middle, bad) if readable else (good, middle)
        return bad - 1

    def _losses(self, refused: pl.DataFrame, why: str) -> list[Loss]:
        return [
            Loss(input=source, line=line, witness=self.name, text=text[:_SHOWN_CHARS], why=why)
            for source, line, text in refused.select("source", "line", "text").iter_rows()
        ]


@cache
def witnesses() -> tuple[Witness, ...]:
    """All modules of ``analyzer.witnesses`` that have a ``WITNESS``, by name.

    A module must not import torch, max or ray at import time.
    """
    package = importlib.import_module("analyzer.witnesses")
    found = []
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        witness = getattr(module, "WITNESS", None)
        if isinstance(witness, Witness):
            found.append(witness)
    return tuple(sorted(found, key=lambda w: w.name))


def witness_named(name: str) -> Witness:
    """The declaration of a record's witness; what is no module (a view of other data) declares nothing."""
    return _by_name().get(name) or Witness(name=name, gates=())


def value_printer() -> str:
    """The name of the witness whose printed tensor values faults are concluded from."""
    return next(one.name for one in witnesses() if one.value_printer)


def is_unexplained(record: FaultRecord) -> bool:
    """Whether only a witness that counts where nobody knows better has read it: it explains but itself."""
    return witness_named(record.witness).read_last is not None


def is_probable(record: FaultRecord) -> bool:
    """Whether it is only the probable cause of an end that others told."""
    return witness_named(record.witness).explains_ends


@cache
def _by_name() -> dict[str, Witness]:
    return {one.name: one for one in witnesses()}

"""What a report says, before it has a form: sentences with their citations, in blocks, in sections.

Views (Markdown, HTML) only lay these values out; they add no claims. A sentence is made of parts so
that text of the log (``code``) is told apart from words of ours and can never act as markup.
"""

from __future__ import annotations

from typing import Literal

from analyzer.schema import Value

SentenceKind = Literal["fact", "inference", "replayed", "gap", "advice"]
SectionId = Literal[
    "verdict",
    "impact",
    "timeline",
    "fault",
    "suspects",
    "replay",
    "cascade",
    "ruled_out",
    "environment",
    "next",
    "author",
    "appendix",
]
CellKind = Literal["cleared", "suspect", "other", "report"]


class Cite(Value):
    """Lines of an input that a sentence rests on. ``line`` null = the whole input was looked through.

    ``quote`` is text that must stand in these lines; the tests check it against the log.
    """

    input: int
    line: int | None = None
    last_line: int | None = None
    quote: str | None = None


class Part(Value):
    """A piece of a sentence; ``code`` = taken from the log or to be typed, shown as such."""

    text: str
    code: bool = False
    strong: bool = False


class Sentence(Value):
    """One statement.

    ``fact``: the log says it; ``inference``: follows from the log; both must cite. ``replayed``: what the
    attempts of a replay showed, whose outputs are named. ``gap``: what the log
    cannot tell or the author has to fill; ``advice``: what to do.
    """

    parts: tuple[Part, ...]
    kind: SentenceKind
    cites: tuple[Cite, ...] = ()


class Paragraph(Value):
    """Sentences that run on."""

    sentences: tuple[Sentence, ...]


class Entry(Value):
    """A headed block: one suspect. ``share`` (0 to 1) draws a bar beside the head."""

    head: Sentence
    body: tuple[Sentence, ...]
    share: float | None = None


class Entries(Value):
    """Headed blocks in order."""

    entries: tuple[Entry, ...]


class Items(Value):
    """A list; each item is one sentence. ``summary`` set = folded under it where the view can fold."""

    sentences: tuple[Sentence, ...]
    summary: str | None = None


class Row(Value):
    """One row of a table; its citations stand in the last column."""

    cells: tuple[tuple[Part, ...], ...]
    cites: tuple[Cite, ...]
    marked: bool = False
    kind: SentenceKind = "fact"


class Table(Value):
    """A table; ``columns`` has one name more than the cells, for the citations."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    summary: str | None = None


class Command(Value):
    """Something to run, and why."""

    why: Sentence
    command: str


class Commands(Value):
    """Commands in the order to try them."""

    commands: tuple[Command, ...]


class Todo(Value):
    """A part that the log cannot fill: left for the author, never invented."""

    label: str
    hint: str


class Todos(Value):
    """Parts left for the author."""

    todos: tuple[Todo, ...]


class RawLine(Value):
    """One line of the log; ``marked`` = a sentence cites it."""

    number: int
    text: str
    marked: bool


class Raw(Value):
    """Lines of one input as they stand in it."""

    input: int
    lines: tuple[RawLine, ...]


class Cell(Value):
    """One mark of the launch-order picture. ``count`` > 1 = ops folded into it; ``at`` = time or order."""

    kind: CellKind
    label: str
    lane: str
    count: int = 1
    share: float = 0.0
    rank: int | None = None
    line: int | None = None


class Strip(Value):
    """Launch order: what was cleared, what can be guilty, where the report came."""

    cells: tuple[Cell, ...]


class Bar(Value):
    """One bar of a bar picture."""

    label: str
    value: float
    marked: bool = False


class Bars(Value):
    """Horizontal bars, first on top. ``unit`` names the axis."""

    bars: tuple[Bar, ...]
    unit: str


class Picture(Value):
    """A picture with its words: ``text`` is a monospaced drawing, ``alt`` says what there is to see."""

    name: str
    title: str
    alt: str
    text: str
    chart: Strip | Bars
    note: Sentence | None = None


Block = Paragraph | Entries | Items | Table | Commands | Todos | Raw | Picture


class Section(Value):
    """One part of the skeleton."""

    id: SectionId
    title: str
    blocks: tuple[Block, ...]


class Story(Value):
    """A whole report. ``inputs`` are the names that citations use, one an input."""

    title: str
    inputs: tuple[str, ...]
    sections: tuple[Section, ...]
    signature: str | None
    confidence: str
    footer: str


class Detail(Value):
    """How much to tell. Whatever is left out is counted in its place.

    ``suspects`` are told with all their reasons, ``rows`` more in a table.
    """

    suspects: int = 3
    reasons: int = 5
    sources: int = 4
    faults: int = 12
    cleared: int = 8
    rows: int = 40
    raw_lines: int = 120
    cells: int = 64
    name_chars: int = 240


FULL = Detail()
LADDER: tuple[Detail, ...] = (
    FULL,
    Detail(reasons=3, sources=2, faults=6, cleared=4, rows=16, raw_lines=40, name_chars=160),
    Detail(
        suspects=2, reasons=2, sources=1, faults=3, cleared=2, rows=6, raw_lines=12, cells=32, name_chars=80
    ),
    Detail(
        suspects=1, reasons=1, sources=1, faults=1, cleared=0, rows=2, raw_lines=0, cells=16, name_chars=40
    ),
)

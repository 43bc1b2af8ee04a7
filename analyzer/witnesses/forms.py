"""Errors told in one line, in one of several forms: found, folded, read once. No witness by itself.

A dead context repeats its errors for ever, each time with another address or time (formats.md 5). Lines that
differ only in such numbers are one text: Polars cuts it out of the line and folds it, Lark reads one of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import FaultRecord, FaultSite, Line
from analyzer.numbers import need_integer
from analyzer.parse.source_stack import Traceback, innermost_user, traceback_before
from analyzer.schema import FaultKind, SourceFrame
from analyzer.tables.codes import CODES, ErrorCode, by_code, by_name, vendor_of
from analyzer.tables.known_text import by_text_start
from analyzer.witness import Fetch
from analyzer.witnesses.distinct import Losses

MAX_TEXTS = 5_000  # of a witness and source; a person reads none of the rest, and Lark takes 0.3 ms each
FETCHED = 24  # errors of a source whose surroundings are read: only the first ones matter
BEFORE_LINES = 400  # a chained traceback with another writer in between
# Numbers that change from one repeat to the next. Short ones are codes, ranks and devices; behind a colon
# stands the line of a source file.
_ADDRESS = r"0x[0-9a-fA-F_]+"
LONG_NUMBER = r"(^|[^:\w.])[0-9]{4,}"
_CPP = (".cc", ".cpp", ".cu", ".cuh", ".h")  # TVM prints its C++ frames as Python ones
Fields = dict[str, list[str]]


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of text.

    ``begins``: regular expression (without groups) for the place in a line where it starts; ``rule``: the
    start of the grammar that reads it from there on.
    """

    rule: str
    begins: str


class Seen(msgspec.Struct, kw_only=True):
    """One text of one process: where it stands, and what it says.

    ``text``: the first of them, from where the form begins. ``fields``: its tokens by kind.
    """

    rule: str
    text: str
    fields: Fields
    source: int
    process: str
    rank: int | None
    pid: int | None
    time_ns: int | None
    lines: list[int]

    @property
    def line(self) -> int:
        """The first line."""
        return self.lines[0]

    def get(self, token: str, at: int = 0) -> str | None:
        """Token ``at`` of a kind."""
        found = self.fields.get(token, [])
        return found[at] if at < len(found) else None

    def number(self, token: str) -> int | None:
        """A token that is a decimal number; commas group its digits."""
        text = self.get(token)
        return None if text is None else need_integer(text.replace(",", ""))


def read_forms(
    frame: pl.DataFrame,
    grammar: str,
    forms: Sequence[Form],
    losses: Losses,
    *,
    blank: Sequence[str] = (LONG_NUMBER,),
    apart: pl.Expr | None = None,
) -> list[Seen]:
    """Read the gated lines of one source.

    Args:
        frame: ``LINES`` of the witness, by line.
        grammar: Name of the grammar; its starts are the rules of the forms.
        forms: The first one that is found in a line wins.
        losses: Takes the lines in which a form begins that the grammar does not read.
        blank: Regular expressions with one group (kept) for numbers that do not tell texts apart.
        apart: Lines with another value here are never folded; sees the columns of ``frame``.

    Returns:
        One value a process and text, by first line. Lines without a form are not in it.
    """
    rows = _pieces(frame, forms, apart)
    if rows.is_empty():
        return []
    known: dict[tuple[str, str], Fields | GrammarError] = {}
    seen: list[Seen] = []
    lost: dict[int, str] = {}
    for row in _fold(rows, blank).iter_rows(named=True):
        shape_of = (row["rule"], row.pop("shape"))
        if shape_of not in known:
            known[shape_of] = _fields(grammar, row["rule"], row["text"], full=len(known) >= MAX_TEXTS)
        fields = known[shape_of]
        if isinstance(fields, GrammarError):
            lost.update(dict.fromkeys(row["lines"], str(fields)))
        else:
            seen.append(Seen(**row, fields=fields))
    _lose(frame, lost, losses)
    return sorted(seen, key=lambda one: one.line)


def read_line(grammar: str, rule: str, text: str) -> Fields | None:
    """The tokens of a text by their kind; null = the rule does not read it."""
    fields = _fields(grammar, rule, text, full=False)
    return None if isinstance(fields, GrammarError) else fields


def error_code(name: str | None, number: int | None, text: str | None) -> ErrorCode | None:
    """The row of an error: its name says most, then its words, then its number.

    Numbers up to 90 with other words are those of before CUDA 10.1 (formats.md 2).
    """
    found = by_text_start(text) if text else None
    by_words = found[0] if found else None
    if name and (row := by_name(name)):
        return row
    if by_words or number is None:
        return by_words
    return by_code(number) or next((row for row in CODES if row.legacy == number), None)


def build_fault(
    seen: Seen,
    witness: str,
    kind: FaultKind,
    site: FaultSite,
    *,
    code: ErrorCode | None = None,
    name: str | None = None,
    vendor: str | None = None,
    met: bool = False,
    teardown: bool = False,
) -> FaultRecord:
    """The record of one text: place in the file, writer, count; the rest is for the witness to add."""
    return FaultRecord(
        source=seen.source,
        process=seen.process,
        line=seen.line,
        last_line=max(seen.lines),
        block_first=seen.line,
        text=seen.text.strip(),
        witness=witness,
        kind=kind,
        site=site,
        code=code.code if code else None,
        name=name or (_name_of(code, vendor) if code else None),
        vendor=vendor_of(name or "") or vendor,
        rank=seen.rank,
        time_ns=seen.time_ns,
        count=len(seen.lines),
        met=met,
        teardown=teardown,
    )


def device_of(number: str | None) -> str | None:
    """``gpu:1`` of ``1``."""
    return None if number is None else f"gpu:{need_integer(number)}"


def place_of(path: str | None, line: str | None, function: str = "") -> SourceFrame | None:
    """A source place; null if a part is missing."""
    return SourceFrame(file=path, line=need_integer(line), function=function) if path and line else None


def with_traceback(fault: FaultRecord, fetch: Fetch) -> tuple[FaultRecord, set[int]]:
    """The record with the user's innermost frame of the traceback that ends in its line, and its lines."""
    before = flat(fetch.before(fault.line, fault.process, BEFORE_LINES))
    trace: Traceback | None = traceback_before([text for _, text in before])
    if trace is None:
        return fault, set()
    lines = {before[n][0] for n in trace.lines}
    python = innermost_user([frame for frame in trace.frames if not frame.file.endswith(_CPP)])
    return msgspec.structs.replace(fault, python=python, block_first=min(lines)), lines


def flat(lines: Sequence[Line]) -> list[tuple[int, str]]:
    """Number and text; a text with several lines gives several."""
    return [(line.number, part) for line in lines for part in line.text.split("\n")]


def _pieces(frame: pl.DataFrame, forms: Sequence[Form], apart: pl.Expr | None) -> pl.DataFrame:
    """Rows with ``rule``, ``cut`` (text from the form on) and ``apart``, by line."""
    keep = ["source", "line", "process", "rank", "pid", "time_ns"]
    left = frame.select(*keep, (pl.lit(0) if apart is None else apart).alias("apart"), "text")
    if left["text"].str.contains("\n", literal=True).any():  # a JSON record can hold a traceback
        left = left.with_columns(pl.col("text").str.split("\n")).explode("text")
    parts = []
    for form in forms:
        cut = pl.col("text").str.extract(f"((?:{form.begins}).*)")
        found = left.with_columns(cut.alias("cut"), pl.lit(form.rule).alias("rule"))
        parts.append(found.filter(pl.col("cut").is_not_null()).drop("text"))
        left = left.filter(found["cut"].is_null())
    return pl.concat(parts).sort("line", maintain_order=True)


def _fold(rows: pl.DataFrame, blank: Sequence[str]) -> pl.DataFrame:
    """Rows of ``_pieces`` to one row a text of a process, by first line."""
    shape = pl.col("cut").str.replace_all(_ADDRESS, "0x")
    for pattern in blank:
        shape = shape.str.replace_all(pattern, "${1}#")
    return (
        rows.with_columns(shape.alias("shape"))
        .group_by("process", "rule", "shape", "apart", maintain_order=True)
        .agg(
            pl.col("source", "rank", "pid", "time_ns").first(),
            pl.col("cut").first().alias("text"),
            pl.col("line").unique(maintain_order=True).alias("lines"),
        )
        .drop("apart")
    )


def _fields(grammar: str, rule: str, text: str, *, full: bool) -> Fields | GrammarError:
    from lark import Token

    if full:
        return GrammarError(grammar, text, 0, (f"at most {MAX_TEXTS} different texts",))
    try:
        tree = parse(grammar, text.strip(), rule)
    except GrammarError as error:
        return error
    fields: Fields = {}
    for token in tree.scan_values(lambda child: isinstance(child, Token)):
        fields.setdefault(token.type.rpartition("__")[2], []).append(token_text(token))
    return fields


def _lose(frame: pl.DataFrame, lost: dict[int, str], losses: Losses) -> None:
    """A loss for each different line, so that none is counted twice. ``lost``: line and reason."""
    if not lost:
        return
    rows = frame.filter(pl.col("line").is_in(list(lost))).select("source", "line", "text")
    for source, line, text in rows.iter_rows():
        losses.add(source, line, text, lost[line])


def _name_of(code: ErrorCode, vendor: str | None) -> str | None:
    return code.names.hip if vendor == "amd" else code.names.runtime

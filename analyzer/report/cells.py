"""Tables of texts made safe for who reads them: spreadsheets run what looks like a formula."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator

import polars as pl

from analyzer.report.plain import plain

# Excel, LibreOffice and Sheets take a cell that begins so for a formula, some in full width too.
_FORMULA = re.compile(r"\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")


def csv_bytes(table: pl.DataFrame) -> bytes:
    """A table as CSV. The only writer of CSV: no text in it is a formula, and none moves a cursor.

    A text that begins like a formula gets an apostrophe in front, which spreadsheets take for "this is text".
    A text that is a number stays one. All texts are quoted: where the separator is a semicolon, one inside of
    a text would begin a new cell.
    """
    buffer = io.BytesIO()
    with_texts(table, _cell).write_csv(buffer, quote_style="non_numeric")
    return buffer.getvalue()


def with_texts(table: pl.DataFrame, change: Callable[[str], str]) -> pl.DataFrame:
    """The table with each text changed. Each distinct text is looked at once.

    Args:
        table: Columns of texts are plain strings or categories; they become strings.
        change: Gives the text to show.
    """
    return table.with_columns([_changed(column, change) for column in _texts(table)])


def distinct_texts(table: pl.DataFrame) -> Iterator[str]:
    """Every text of a table, once a column, in the order of their first rows."""
    for column in _texts(table):
        yield from column.drop_nulls().unique(maintain_order=True)


def _texts(table: pl.DataFrame) -> list[pl.Series]:
    kinds = (pl.String, pl.Categorical, pl.Enum)
    return [table[name].cast(pl.String) for name, dtype in table.schema.items() if isinstance(dtype, kinds)]


def _changed(column: pl.Series, change: Callable[[str], str]) -> pl.Series:
    known = {text: change(text) for text in column.drop_nulls().unique()}
    other = {text: shown for text, shown in known.items() if text != shown}
    return column.replace(list(other), list(other.values())) if other else column


def _cell(text: str) -> str:
    shown = plain(text)
    is_formula = _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
    return f"'{shown}" if is_formula else shown

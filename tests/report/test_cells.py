"""Tables for spreadsheets: no text in one is a formula, numbers stay numbers, each text stays one cell."""

from __future__ import annotations

import csv
import io
from itertools import product

import polars as pl
import pytest

from analyzer.report.cells import csv_bytes, distinct_texts, with_texts
from analyzer.report.plain import HOSTILE_CATEGORIES, plain_json

BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "  =", "\t=")
RESTS = ('HYPERLINK("http://evil/?x","click")', "SUM(1+1)*cmd|'/c calc'!A0", "1+cmd", "a", "a;b,c\n=d", "1;2")
NUMBERS = ("-1", "+2.5", "-1e9", "-0.", "-.5", "3")


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


@pytest.mark.parametrize("begin", BEGINS)
def test_no_cell_begins_like_a_formula(begin: str) -> None:
    """What a spreadsheet would run is text: it has an apostrophe, or a visible escape, in front."""
    texts = [begin + rest for rest in RESTS]
    rows = rows_of(csv_bytes(pl.DataFrame({"name": texts, "n": range(len(texts))})))
    assert len(rows) == len(texts) + 1
    for row, rest in zip(rows[1:], RESTS, strict=True):
        assert row[0].startswith("'")
        assert rest.split("\n")[0] in row[0]
        assert row[0].isprintable()


def test_numbers_stay_numbers() -> None:
    table = pl.DataFrame(
        {"text": NUMBERS, "number": [-1, 2, -3, 4, -5, 6], "float": [-1.5] * 6, "null": [None] * 6}
    )
    text = csv_bytes(table).decode()
    assert [row[:3] for row in rows_of(text.encode())[1:]] == [
        [word, str(number), "-1.5"] for word, number in zip(NUMBERS, [-1, 2, -3, 4, -5, 6], strict=True)
    ]
    assert '"-1.5"' not in text


def test_ordinary_names_are_as_they_are() -> None:
    names = ["matmul", "aten::add.Tensor", "Prologue(add, [0])", "a=b", "x-1", 'quote " and, comma', "ünï"]
    assert [row[0] for row in rows_of(csv_bytes(pl.DataFrame({"name": names})))[1:]] == names


def test_texts_of_categories_are_changed_once_each() -> None:
    seen: list[str] = []

    def change(text: str) -> str:
        seen.append(text)
        return text.upper()

    table = pl.DataFrame({"a": ["x", "y", "x", None], "n": [1, 2, 3, 4]}).with_columns(
        pl.col("a").cast(pl.Categorical)
    )
    assert with_texts(table, change)["a"].to_list() == ["X", "Y", "X", None]
    assert sorted(seen) == ["x", "y"]
    assert list(distinct_texts(table)) == ["x", "y"]


def test_json_has_an_escape_for_each_character_that_a_terminal_obeys() -> None:
    import json
    import unicodedata

    for code in range(0x20, 0x110000):
        char = chr(code)
        if unicodedata.category(char) in HOSTILE_CATEGORIES - {"Cs"}:
            shown = plain_json(f'"{char}"')
            assert shown.isascii(), hex(code)
            assert json.loads(shown) == char
    assert plain_json('"naïve 中文 🙂"') == '"naïve 中文 🙂"'


def test_every_pair_of_a_beginning_and_a_rest_reads_back_as_one_cell() -> None:
    texts = [begin + rest for begin, rest in product(BEGINS, RESTS)]
    rows = rows_of(csv_bytes(pl.DataFrame({"a": texts, "b": texts})))
    assert {len(row) for row in rows} == {2}
    assert all(row[0] == row[1] for row in rows[1:])

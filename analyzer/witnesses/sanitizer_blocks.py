"""From lines of compute-sanitizer to its blocks, equal ones folded. No witness by itself.

One wild launch prints a block of twenty lines for each thread. Polars cuts the blocks, takes thread and block
out of them and folds those with the same message and the same place in the code.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl

MARK = "========= "
_SAID = r"(?:^|[^=])={9} (.*)$"
_BY = r"^\s*by thread \(([0-9]+), ?([0-9]+), ?([0-9]+)\) in block \(([0-9]+), ?([0-9]+), ?([0-9]+)\)"
_AXES = ("tx", "ty", "tz", "bx", "by", "bz")
_FRAME = r"^\s+Device Frame:"
_RACE = r"^(?i:error|warning|info): Race"
_ADDRESS = r"0x[0-9a-fA-F]+|[0-9][0-9,]* bytes"


class Block(msgspec.Struct, kw_only=True):
    """Blocks of one process with the same message at the same place, by the first of them.

    ``low``, ``high``: smallest and largest thread (x, y, z) and block (x, y, z); null = the text has none.
    """

    source: int
    process: str
    rank: int | None
    time_ns: int | None
    head: str
    line: int
    last_line: int
    block_last: int
    count: int
    low: list[int | None]
    high: list[int | None]
    body: list[tuple[int, str]] = []


def split_lines(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[int]]:
    """Lines behind the mark.

    Args:
        frame: ``LINES`` of the witness, by line.

    Returns:
        The rows with ``said`` (text behind the mark) and ``block`` (counts the heads of a process), and the
        numbers of lines that only look alike: rules of other programs, drawn with the same sign.
    """
    rows = frame.select("source", "line", "process", "rank", "time_ns", pl.col("text").str.split("\n"))
    rows = rows.explode("text").with_columns(pl.col("text").str.extract(_SAID).alias("said"))
    mine = pl.col("said").is_not_null() & ~pl.col("said").str.contains(r"={3,}\s*$")
    rows = rows.with_columns(mine.alias("mine"))
    other = rows.filter(~pl.col("mine"))["line"].unique().sort().to_list()
    rows = rows.filter("mine").drop("text", "mine")
    head = pl.col("said").str.contains(r"^\S").alias("is_head")
    rows = rows.with_columns(head).with_columns(pl.col("is_head").cum_sum().over("process").alias("block"))
    return rows, other


def fold(rows: pl.DataFrame, limit: int) -> Iterator[Block]:
    """Blocks of ``split_lines``, equal ones folded, by first line; the first ``limit`` have a body."""
    blocks = _blocks(rows)
    keys = ["process", "shape", "place", "kernel"]
    folded = (
        blocks.group_by(keys, maintain_order=True)
        .agg(
            pl.col("source", "rank", "time_ns", "head", "line", "block", "block_last").first(),
            pl.col("block_last").max().alias("last_line"),
            pl.len().alias("count"),
            pl.concat_list(pl.col(name).min() for name in _AXES).alias("low"),
            pl.concat_list(pl.col(f"{name}_high").max() for name in _AXES).alias("high"),
        )
        .sort("line")
    )
    first = folded.head(limit).select("process", "block")
    said = rows.filter(~pl.col("is_head")).join(first, on=["process", "block"], how="semi")
    bodies: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for process, block, line, text in said.select("process", "block", "line", "said").iter_rows():
        if text.strip():
            bodies.setdefault((process, block), []).append((line, text.strip()))
    for row in folded.drop("shape", "place", "kernel").iter_rows(named=True):
        body = bodies.get((row["process"], row.pop("block")), [])
        yield Block(**row, body=body)


def _blocks(rows: pl.DataFrame) -> pl.DataFrame:
    """One row a block: head, its shape, place, kernel, thread and block ranges, first and last line.

    ``kernel``: the outermost device frame; many kernels stop at the same barrier of CUDA's headers.
    Lines before the first head (the log was cut) are a block without one.
    """
    said = pl.col("said")
    by = said.str.extract_groups(_BY)
    axes = [by.struct[n].cast(pl.Int64, strict=False).alias(name) for n, name in enumerate(_AXES)]
    head = pl.when("is_head").then(said)
    place = pl.when(~pl.col("is_head") & said.str.contains(r"^\s+at ")).then(said.str.strip_chars())
    frame = pl.when(said.str.contains(_FRAME)).then(said.str.strip_chars())
    shape = pl.when(pl.col("head").str.contains(_RACE)).then("head").otherwise(
        pl.col("head").str.replace_all(_ADDRESS, "#")
    )  # fmt: skip
    return (
        rows.with_columns(head.alias("head"), place.alias("place"), frame.alias("kernel"), *axes)
        .group_by("process", "block", maintain_order=True)
        .agg(
            pl.col("source", "rank", "time_ns").first(),
            pl.col("head").drop_nulls().first().fill_null(""),
            pl.col("place").drop_nulls().first().fill_null(""),
            pl.col("kernel").drop_nulls().last().fill_null(""),
            pl.col("line").first(),
            pl.col("line").last().alias("block_last"),
            *(pl.col(name).min() for name in _AXES),
            *(pl.col(name).max().alias(f"{name}_high") for name in _AXES),
        )
        .with_columns(shape.alias("shape"))
    )

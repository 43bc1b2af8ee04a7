"""What the value printer says about tensors, all of them at once: least and largest value, and their end.

No witness by itself. The lines are fetched in a second pass over the file: only logs with headers pay it.
"""

from __future__ import annotations

import polars as pl

from analyzer.model import PRINTS
from analyzer.witness import Fetch

# Label, wrapper, what it tells. The C++ wrapper ends with "Requires grad" and a blank line, the Python
# wrapper with "Std" (observed.md 29, 34); "Value" is a scalar of the Python wrapper.
_LABELS = (
    ("Number of elements: ", "tensor", "seen"),
    ("Number of elements:  ", "python", "seen"),
    ("Min value: ", "tensor", "min"),
    ("Max value: ", "tensor", "max"),
    ("Requires grad: ", "tensor", "end"),
    ("Min:  ", "python", "min"),
    ("Max:  ", "python", "max"),
    ("Std:  ", "python", "end"),
    ("Value:  ", "python", "value"),
)
_BODY_LINES = 320  # 64 values, each in a section of its own with head and scale, and twelve labels


def with_values(prints: pl.DataFrame, fetch: Fetch) -> tuple[pl.DataFrame, pl.Series]:
    """Fill in what was printed below each header.

    Args:
        prints: ``PRINTS`` of one source.
        fetch: Of that source.

    Returns:
        ``PRINTS``, and the lines of all bodies. A saved tensor was read back by its one line.
    """
    heads = prints.with_row_index("n")
    owners = heads.filter(pl.col("form").is_in(["tensor", "python"])).unique(
        ["process", "line"], keep="last", maintain_order=True
    )
    told = _told(owners.select("n", "line", "process", "form").sort("line"), fetch)
    joined = heads.join(told, on="n", how="left", maintain_order="left")
    read_back = pl.when(pl.col("form").is_in(["saved", "scalar"])).then("line").otherwise("last")
    filled = joined.with_columns(
        pl.col("min_").alias("min"),
        pl.col("max_").alias("max"),
        pl.coalesce("value", "value_").alias("value"),
        read_back.alias("end"),
    )
    bodies = joined.filter(pl.col("seen").is_not_null()).select(
        "line", pl.col("seen") + (pl.col("last").is_not_null() & (pl.col("form") == "tensor")).cast(pl.UInt32)
    )
    return filled.select(pl.col(name).cast(kind) for name, kind in PRINTS.items()), _body_lines(bodies)


def _told(owners: pl.DataFrame, fetch: Fetch) -> pl.DataFrame:
    """For each header: min_, max_, value_, last (null = cut off) and seen (last line that was found)."""
    lines = fetch.matching([label for label, _, _ in _LABELS])
    labelled = pl.concat([_with_label(lines, *label) for label in _LABELS]).sort("line")
    found = labelled.join_asof(
        owners.rename({"line": "head"}).sort("head"),
        left_on="line",
        right_on="head",
        by=["process", "form"],
        strategy="backward",
        check_sortedness=False,
    ).filter((pl.col("line") - pl.col("head")) <= _BODY_LINES)
    number = pl.col("text").replace("-nan", "nan").cast(pl.Float64, strict=False)  # C++ prints the sign

    def first(tells: str, value: pl.Expr) -> pl.Expr:
        return value.filter(pl.col("tells") == tells).first()

    return found.group_by("n", maintain_order=True).agg(
        first("min", number).alias("min_"),
        first("max", number).alias("max_"),
        first("value", pl.col("text")).alias("value_"),
        pl.col("line").filter(pl.col("tells").is_in(["end", "value"])).first().alias("last"),
        pl.coalesce(
            pl.col("line").filter(pl.col("tells").is_in(["end", "value"])).first(), pl.col("line").max()
        ).alias("seen"),
    )


def _with_label(lines: pl.DataFrame, label: str, form: str, tells: str) -> pl.DataFrame:
    """Lines that begin with a label: line, process, text behind it, form, tells."""
    own = lines.filter(pl.col("text").str.starts_with(label))
    return own.select(
        "line",
        "process",
        pl.col("text").str.strip_prefix(label).str.strip_chars(),
        pl.lit(form).alias("form"),
        pl.lit(tells).alias("tells"),
    )


def _body_lines(bodies: pl.DataFrame) -> pl.Series:
    """All lines behind ``line`` up to ``seen``."""
    if bodies.is_empty():
        return pl.Series([], dtype=pl.UInt32)
    numbers = pl.int_ranges(pl.col("line") + 1, pl.col("seen") + 1, dtype=pl.UInt32)
    return bodies.select(numbers.alias("line")).explode("line")["line"].drop_nulls()

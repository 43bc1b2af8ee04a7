"""Headers of the value printer to launches: what is printed before a kernel and after it belongs together.

No witness by itself.
"""

from __future__ import annotations

import polars as pl

from analyzer.model import LAUNCHES, PRINTS

HEADS = {
    "source": pl.UInt16(),
    "process": pl.String(),
    "line": pl.UInt32(),
    "part": pl.UInt32(),
    "time_ns": pl.Int64(),
    "form": pl.String(),
    "event": pl.String(),
    "kernel": pl.String(),
    "arg": pl.String(),
    "value": pl.String(),
}
_LEVELS = {"saved": 1, "name": 3}  # all other forms are of level 2 (observed.md 29, 30)
_WRITER = ["source", "process"]


def number_launches(heads: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Find the launches.

    A kernel has one block of lines before its launch and one after it; in both each argument has a line. The
    block after belongs to the last launch of that kernel that has none yet, so that two threads that print
    at once, and a block whose beginning was cut off, do no harm.

    Args:
        heads: ``HEADS``, by (line, part).

    Returns:
        ``LAUNCHES`` and ``PRINTS`` (``min``, ``max`` and ``end`` still null), see ``KernelLog``.
    """
    marked = _blocks(heads)
    events = marked.filter(pl.col("event") != "input")
    blocks = events.group_by([*_WRITER, "block"], maintain_order=True).agg(
        pl.col("n").first(),
        pl.col("event", "kernel", "form", "line", "time_ns").first(),
        pl.col("line").last().alias("last"),
    )
    launches, owners = _matched(blocks)
    prints = marked.join(owners, on=[*_WRITER, "block"], how="left", maintain_order="left")
    repeat = pl.int_range(pl.len()).over([*_WRITER, "block", "arg"]).alias("repeat")
    empty = [pl.lit(None).alias(name) for name in ("min", "max", "end")]
    values = prints.with_columns(repeat, *empty).filter(pl.col("form") != "name")
    return _typed(launches, LAUNCHES), _typed(values, PRINTS)


def _typed(frame: pl.DataFrame, schema: dict[str, pl.DataType]) -> pl.DataFrame:
    return frame.select(pl.col(name).cast(kind) for name, kind in schema.items())


def _blocks(heads: pl.DataFrame) -> pl.DataFrame:
    """Number the blocks of each process: lines of one event of one kernel that follow one another.

    At level 3 each line is a block of its own: a kernel can be launched twice in a row.
    """
    changed = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift(1).over(_WRITER)) for name in ("event", "kernel")
    )
    first = pl.int_range(pl.len()).over(_WRITER) == 0
    starts = first | changed | (pl.col("form") == "name")
    return heads.with_row_index("n").with_columns(
        starts.cast(pl.UInt32).cum_sum().over(_WRITER).alias("block")
    )


def _matched(blocks: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Launches with the blocks after them; and the launch of each block."""
    key = [*_WRITER, "kernel"]
    before = blocks.filter(pl.col("event") == "before").with_columns(
        pl.int_range(pl.len()).over(_WRITER).alias("id"),
        pl.int_range(1, pl.len() + 1).over(key).alias("occurrence"),
        pl.col("form").replace_strict(_LEVELS, default=2, return_dtype=pl.UInt8).alias("level"),
    )
    after = blocks.filter(pl.col("event") == "after")
    found = after.sort("n").join_asof(
        before.select(*key, "n", "id").sort("n"), on="n", by=key, strategy="backward", check_sortedness=False
    )
    found = found.filter(pl.col("id").is_not_null()).unique(
        [*_WRITER, "id"], keep="first", maintain_order=True
    )
    ends = found.select(
        *_WRITER, "id", pl.col("line").alias("completion_line"), pl.col("last").alias("after_last")
    )
    launches = before.rename({"last": "before_last"}).join(ends, on=[*_WRITER, "id"], how="left")
    owners = pl.concat([before.select(*_WRITER, "block", "id"), found.select(*_WRITER, "block", "id")])
    return launches.sort([*_WRITER, "id"]), owners

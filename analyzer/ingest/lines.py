"""Bytes to gated lines: one streaming pass of Polars over the whole file.

The pass reads each line once and keeps three things: op records that start their line (split into columns
at once, so that a million records cost a dictionary and not a million strings), the closing lines of
their bodies, and every other line that holds one of the witnesses' literals. All else is only counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import polars as pl

OP = "[OP] "
CLOSERS = (";target=", "[fused from ")  # last line of a multi-line op record (observed.md 2)
_META = frozenset(r"\.+*?()|[]{}^$#&-~")
_LINE = pl.col("raw")
# A string that passes a filter is a view of the buffer that the file was read into, and keeps all of it:
# one gated line a megabyte would hold the whole file in memory. Joined to nothing it gets memory of its own.
_OWN_COPY = pl.concat_str("raw", pl.lit("")).alias("raw")
# The frames of op bodies are most of an op log and hold neither a space nor a "="; text worth reading does
# (``CUDA_LAUNCH_BLOCKING=1`` of a printed environment has no space). The cheap test runs first and the
# literals only on what is left: pushing both filters down would join them into one that runs everything on
# every line (54 literals: 4.3 against 3.2 s of processor time a GB).
# Of these a shell says no more than the word.
_WORDS = ("Killed", "Aborted")
_CHEAP_FILTER_FIRST = pl.QueryOptFlags(predicate_pushdown=False)


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What one pass over a source kept. Lines count from 1.

    ``op_heads``: line u32, head cat (text before ``[id=``), id u64 or null, detail cat; ``closers``: line
    u32 and ``fused`` bool; ``gated``: line u32, raw str, all other lines with a literal.
    """

    total_lines: int
    op_heads: pl.DataFrame
    closers: pl.DataFrame
    gated: pl.DataFrame


def literal_pattern(literals: Sequence[str]) -> str:
    """One alternation of literals; literals that contain another one are dropped as they are covered."""
    return _pattern(tuple(literals))


@cache
def _pattern(literals: tuple[str, ...]) -> str:
    kept: list[str] = []
    for literal in sorted(set(literals), key=len):  # only a shorter one can be inside
        if not any(one in literal for one in kept):
            kept.append(literal)
    return "|".join("".join("\\" + c if c in _META else c for c in lit) for lit in sorted(kept))


def scan(path: Path, literals: Sequence[str]) -> Scan:
    """Read the whole file once.

    Args:
        path: Plain bytes, valid UTF-8.
        literals: The union of all witnesses' gates.

    Raises:
        polars.exceptions.ComputeError: The file is not valid UTF-8 (rewrite it first).
    """
    lines = pl.scan_lines(path, name="raw", row_index_name="line", row_index_offset=1, glob=False)
    is_op = _LINE.str.starts_with(OP)
    is_closer = _LINE.str.starts_with(CLOSERS[0]) | _LINE.str.starts_with(CLOSERS[1])
    is_text = _LINE.str.contains("[ =]") | _LINE.eq(_WORDS[0]) | _LINE.eq(_WORDS[1])
    worth_reading = lines.filter(is_text).filter(~is_op)
    total, heads, closers, gated = pl.collect_all(
        [
            lines.select(pl.len()),
            split_heads(lines.filter(is_op)),
            lines.filter(is_closer).select("line"),
            worth_reading.filter(_LINE.str.contains(literal_pattern([OP, *literals]))).with_columns(
                _OWN_COPY
            ),
        ],
        engine="streaming",
        optimizations=_CHEAP_FILTER_FIRST,
    )
    return Scan(total_lines=int(total.item()), op_heads=heads, closers=closers, gated=gated)


def split_heads(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Columns of op heads: ``[OP] LAUNCH <name> [id=<id>]<detail>`` cut at its two literals.

    Args:
        lines: line u32, raw str; every raw starts with ``[OP] ``.

    Returns:
        line, head (cat), id (u64, null if there is none: a cut or foreign text), detail (cat).
    """
    cut = lines.with_columns(_LINE.str.splitn("[id=", 2).alias("s")).select(
        "line",
        pl.col("s").struct[0].cast(pl.Categorical).alias("head"),
        pl.col("s").struct[1].str.splitn("]", 2).alias("s"),
    )
    return cut.select(
        "line",
        "head",
        # by way of i64: what no counter reaches is no id, and later stages may subtract
        pl.col("s").struct[0].cast(pl.Int64, strict=False).cast(pl.UInt64, strict=False).alias("id"),
        pl.col("s").struct[1].cast(pl.Categorical).alias("detail"),
    )


def lines_with(path: Path, literals: Sequence[str]) -> pl.DataFrame:
    """All lines that hold one of the literals: line u32, raw str. A second pass, where one is needed."""
    lines = pl.scan_lines(path, name="raw", row_index_name="line", row_index_offset=1, glob=False)
    return lines.filter(_LINE.str.contains(literal_pattern(literals))).collect(engine="streaming")


def lines_at(path: Path, numbers: pl.Series) -> pl.DataFrame:
    """The lines with these numbers: line u32, raw str."""
    lines = pl.scan_lines(path, name="raw", row_index_name="line", row_index_offset=1, glob=False)
    return lines.filter(pl.col("line").is_in(numbers.implode())).collect(engine="streaming")

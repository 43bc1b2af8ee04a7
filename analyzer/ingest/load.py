"""One source, read: the scan, its gated lines as ``LINES``, its op records as ``OPS``.

Raw op logs take the fast way (columns straight from the scan). Everything else, and the few op lines that
are not clean (colour codes, two records in one line, a carriage return inside), goes through the envelope
first. Both ways meet in the same ``OPS`` frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import polars as pl

from analyzer.errors import InputError
from analyzer.ingest import lines as scanning
from analyzer.ingest.crowd import MAX_PROCESSES, largest
from analyzer.ingest.envelope import LINES_SCHEMA, strip
from analyzer.ingest.owners import adopt, find_owners
from analyzer.ingest.reader import LineReader
from analyzer.ingest.scannable import rewritten, scannable, snapshot
from analyzer.ingest.source import Source

_REPEATED = 4  # repeats of a line from which on looking for distinct ones pays
_HEAD = r"^\[OP\] (?:LAUNCH|COMPLETE) "
_UNCLEAN = r"[\x1b\r\x00]|.\[OP\] "  # control characters, or a second record in the line

OPS_SCHEMA = {
    "source": pl.UInt16(),
    "process": pl.String(),
    "line": pl.UInt32(),
    "launch": pl.Boolean(),
    "id": pl.UInt64(),
    "name": pl.Categorical(),
    "detail": pl.Categorical(),
    "time_ns": pl.Int64(),
    "clock": pl.String(),
    "stream": pl.String(),
    "body_last": pl.UInt32(),
}


class Loaded(msgspec.Struct, kw_only=True):
    """One source after ingest.

    ``cut_ops``: line, text of op heads without a readable id; ``crowd_ops``: the same of ops of processes
    beyond those that can be kept.
    """

    source: Source
    total_lines: int
    gated: pl.DataFrame
    ops: pl.DataFrame
    cut_ops: pl.DataFrame
    crowd_ops: pl.DataFrame
    reader: LineReader
    notes: list[str]


def load(source: Source, literals: Sequence[str], spool: Path) -> Loaded:
    """Scan ``source`` and take the envelopes off what passed the gate.

    Args:
        source: The input.
        literals: The union of all witnesses' gates, not empty.
        spool: Folder for copies.

    Raises:
        InputError: The file vanished, was shortened meanwhile, or cannot be read.
    """
    try:
        return _load(source, literals, spool)
    except FileNotFoundError as error:
        raise InputError(f"{source.name}: vanished while it was read") from error


def _load(source: Source, literals: Sequence[str], spool: Path) -> Loaded:
    path, notes = scannable(source, spool)
    try:
        found = scanning.scan(path, literals)
    except pl.exceptions.ComputeError as error:
        if "utf8" not in str(error).lower():
            raise InputError(f"{source.name}: cannot be read: {error}") from error
        path, told = rewritten(path, spool / f"{source.index}.utf8.log")
        notes += told
        found = scanning.scan(path, literals)
    size_bytes = path.stat().st_size
    if path == source.path and size_bytes != source.plain_bytes:
        return _load(snapshot(source, size_bytes, spool), literals, spool)
    clean, unclean = _split_unclean(path, found.op_heads, literals)
    # one chunk: each of the hundreds that streaming leaves costs every later search its own automaton
    gated = _stripped(source.index, pl.concat([found.gated, unclean]).sort("line")).rechunk()
    has_op = pl.col("text").str.contains("[OP] ", literal=True)
    slow = gated.filter(has_op)
    closers = _closers(path, found.closers, slow, source.index)
    all_ops = _ops_of_both(clean, slow, source.index)
    kept_ops = largest(all_ops, MAX_PROCESSES)
    ops = _with_bodies(kept_ops, closers)
    cut = ops["id"].null_count() > 0
    reader = LineReader(path, source.index, found.total_lines, size_bytes)
    reader.owners = find_owners(gated, reader.raw)
    gated = adopt(gated.filter(~has_op | pl.col("text").str.contains_any(list(literals))), reader.owners)
    return Loaded(
        source=source,
        total_lines=found.total_lines,
        gated=gated,
        ops=ops.filter(pl.col("id").is_not_null()) if cut else ops,
        cut_ops=ops.filter(pl.col("id").is_null()).select("line", "name"),
        crowd_ops=_crowd(all_ops, kept_ops).select("line", "name"),
        reader=reader,
        notes=[*source.notes, *notes],
    )


def _crowd(ops: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    return ops.clear() if kept.height == ops.height else ops.join(kept, on="process", how="anti")


def _ops_of_both(clean: pl.DataFrame, slow: pl.DataFrame, source: int) -> pl.DataFrame:
    """``OPS`` without bodies, by line. Columns that are constant in a raw log stay so: no memory is spent."""
    fast = _ops_from_heads(clean, source)
    if slow.is_empty() and fast["line"].is_sorted():
        return fast
    return pl.concat([fast, _ops_from_lines(slow)]).sort("line")


def _split_unclean(
    path: Path, heads: pl.DataFrame, literals: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Op heads that the cut at two literals may have read wrongly go back as raw lines.

    So do those that another writer's text is glued to. Only distinct heads and details are looked at: a few
    hundred texts for a million records.
    """
    odd = f"{_UNCLEAN}|{scanning.literal_pattern(literals)}"
    head = _distinct(heads["head"])
    detail = _distinct(heads["detail"])
    odd_head = head.filter(head.str.contains(odd) | ~head.str.contains(_HEAD)).cast(pl.Categorical)
    odd_detail = detail.filter(detail.str.contains(rf"{odd}|^\[OP\] |\[id=")).cast(pl.Categorical)
    if not (odd_head.len() or odd_detail.len()):
        return heads, pl.DataFrame(schema={"line": pl.UInt32, "raw": pl.String})
    is_odd = pl.col("head").is_in(odd_head.implode()) | pl.col("detail").is_in(odd_detail.implode())
    lines = heads.filter(is_odd.fill_null(False))["line"]
    return heads.filter(~is_odd.fill_null(False)), scanning.lines_at(path, lines)


def _distinct(column: pl.Series) -> pl.Series:
    return column.unique().drop_nulls().cast(pl.String)


def _stripped(source: int, raw: pl.DataFrame) -> pl.DataFrame:
    """``LINES`` of raw lines. Where lines repeat, each distinct one is taken out of its envelope once."""
    own = pl.lit(source, dtype=pl.UInt16).alias("source")
    distinct = raw.select(pl.col("raw").unique(maintain_order=True)).with_row_index("line", offset=1)
    if distinct.height * _REPEATED > raw.height:
        return strip(raw.select(own, "line", "raw"))
    told = strip(distinct.select(own, "line", "raw")).rename({"line": "nth", "raw": "piece"})
    numbered = raw.join(distinct.rename({"line": "nth"}), on="raw", how="left", maintain_order="left")
    joined = numbered.drop("raw").join(told, on="nth", how="left", maintain_order="left_right")
    return joined.rename({"piece": "raw"}).select(list(LINES_SCHEMA))


def _ops_from_heads(heads: pl.DataFrame, source: int) -> pl.DataFrame:
    """``OPS`` of raw op lines: name and event are told from distinct heads."""
    names = heads.select(pl.col("head").unique()).with_columns(pl.col("head").cast(pl.String).alias("text"))
    names = names.select(
        "head",
        pl.col("text").str.starts_with("[OP] LAUNCH").alias("launch"),
        pl.col("text").str.replace(_HEAD, "").str.strip_chars().cast(pl.Categorical).alias("name"),
    )
    return _told(heads, names).select(
        pl.lit(source, dtype=pl.UInt16).alias("source"),
        pl.lit("").alias("process"),
        "line",
        "launch",
        pl.when(pl.col("detail").is_not_null()).then("id").alias("id"),  # no "]": cut off inside the number
        "name",
        "detail",
        pl.lit(None, dtype=pl.Int64).alias("time_ns"),
        pl.lit(None, dtype=pl.String).alias("clock"),
        pl.lit(None, dtype=pl.String).alias("stream"),
    )


def _told(heads: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """``heads`` with what is known of each distinct one: looked up by its number, which is small."""
    known = names.select(pl.col("head").to_physical().alias("code"), "launch", "name").drop_nulls("code")
    codes = heads["head"].to_physical()
    size = int(known["code"].max() or 0) + 1  # type: ignore[arg-type]
    if heads.is_empty() or codes.null_count() or size > heads.height:  # numbers of a session with many texts
        return heads.join(names, on="head", how="left", maintain_order="left")
    table = pl.DataFrame({"code": pl.int_range(size, dtype=pl.UInt32, eager=True)}).join(
        known, on="code", how="left", maintain_order="left"
    )
    return heads.with_columns(table["launch"].gather(codes), table["name"].gather(codes))


def _ops_from_lines(gated: pl.DataFrame) -> pl.DataFrame:
    """``OPS`` of payloads that hold ``[OP] `` anywhere; two records in one line give two rows.

    A payload that begins like a record and goes on otherwise was cut off: it gives a row without id.
    """
    pieces = (
        gated.lazy()
        .with_columns(pl.col("text").str.extract_all(r"\[OP\] (?:[^\[]|\[[^O]|\[O[^P])*").alias("raw"))
        .explode("raw")
        .filter(pl.col("raw").str.contains(_HEAD) | pl.col("text").str.starts_with(pl.col("raw")))
    )
    keep = ["source", "process", "time_ns", "clock", "stream"]
    cut = pieces.with_columns(
        pl.col("raw")
        .str.extract_groups(r"^\[OP\] (LAUNCH|COMPLETE) (.*?) ?(?:\[id=([0-9]+)\](.*))?$")
        .alias("g")
    ).select(
        *keep,
        "line",
        (pl.col("g").struct[0] == "LAUNCH").fill_null(False).alias("launch"),
        pl.coalesce(pl.col("g").struct[1], "raw").str.strip_chars().cast(pl.Categorical).alias("name"),
        pl.col("g").struct[2].cast(pl.Int64, strict=False).cast(pl.UInt64).alias("id"),
        pl.col("g").struct[3].fill_null("").cast(pl.Categorical).alias("detail"),
    )
    order = [name for name in OPS_SCHEMA if name != "body_last"]
    return cut.select(order).collect()


def _closers(path: Path, raw: pl.DataFrame, slow: pl.DataFrame, source: int) -> pl.DataFrame:
    """Closing lines of op bodies: process, line. Enveloped ones need a second pass over the file."""
    plain = raw.select(pl.lit("").alias("process"), "line")
    if slow.is_empty():
        return plain
    more = _stripped(source, scanning.lines_with(path, scanning.CLOSERS))
    starts = [pl.col("text").str.starts_with(closer) for closer in scanning.CLOSERS]
    return more.filter(starts[0] | starts[1]).select("process", "line").sort("line")


def _with_bodies(ops: pl.DataFrame, closers: pl.DataFrame) -> pl.DataFrame:
    """Attach the last line of each multi-line record.

    A record has a body if its detail is empty (observed.md 2) and a closing line of the same process comes
    before the next record of that process.
    """
    if closers.is_empty() or ops.is_empty():
        return ops.with_columns(pl.lit(None, dtype=pl.UInt32).alias("body_last"))
    details = ops["detail"].unique().drop_nulls()
    blank = details.filter(details.cast(pl.String).str.strip_chars() == "")
    empty = pl.col("detail").is_in(blank.implode())
    if is_one_process(ops):
        own = closers.filter(pl.col("process") == ops["process"][0])["line"]
        if (bodies := _one_closer_each(ops, own, ops.select(empty).to_series())) is not None:
            return bodies
        joined = _next_closers(ops, own)
    else:
        joined = pl.concat(
            [
                _next_closers(part, closers.filter(pl.col("process") == part["process"][0])["line"])
                for part in ops.partition_by("process", maintain_order=True)
            ]
        ).sort("line")
    inside = pl.col("next_line").is_null() | (pl.col("body_last") < pl.col("next_line"))
    joined = joined.with_columns(pl.when(empty & inside).then("body_last").alias("body_last"))
    return joined.select(*ops.columns, "body_last")


def is_one_process(ops: pl.DataFrame) -> bool:
    """Whether all ops carry the same process key; told by comparison, without hashing millions of rows."""
    return ops.is_empty() or bool((ops["process"] == ops["process"][0]).all())


def _one_closer_each(ops: pl.DataFrame, closers: pl.Series, empty: pl.Series) -> pl.DataFrame | None:
    """The usual log: each record without a detail has one closing line before the next record.

    Then the n-th closing line is that of the n-th such record, and nothing has to be searched. Null = the
    log is not like that (cut, several writers, foreign text).
    """
    following = ops["line"].shift(-1)
    heads, limits = ops["line"].filter(empty), following.filter(empty)
    if heads.len() != closers.len() or not (closers > heads).all():
        return None
    if not (closers < limits).fill_null(value=True).all():
        return None
    rows = pl.select(pl.int_range(ops.height, dtype=pl.UInt32)).to_series().filter(empty)
    bodies = pl.Series("body_last", [None], dtype=pl.UInt32).new_from_index(0, ops.height)
    return ops.with_columns(bodies.scatter(rows, closers))


def _next_closers(ops: pl.DataFrame, closers: pl.Series) -> pl.DataFrame:
    """For ops of one process: the line of the next record, and of the next closing line (null = none)."""
    following = closers.search_sorted(ops["line"], side="right")
    return ops.with_columns(
        pl.col("line").shift(-1).alias("next_line"),
        closers.gather(pl.select(pl.when(following < closers.len()).then(following)).to_series()).alias(
            "body_last"
        ),
    )

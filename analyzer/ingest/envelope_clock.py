"""Clocks of the envelope layers: from the groups of a pattern to nanoseconds (formats.md 7.8)."""

from __future__ import annotations

import polars as pl

_NS = 1_000_000_000
_MONTHS = dict(
    zip(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
        range(1, 13),
        strict=True,
    )
)


def clock_updates(groups: set[str]) -> list[pl.Expr]:
    """New ``time_ns`` and ``clock`` of rows that lost a layer.

    A full date beats the other clocks; among equals the outer one, which was found first, stays.

    Args:
        groups: Names of the layer's groups. The frame has them as string columns ``@<name>``, null where
            an optional one did not match.

    Returns:
        Expressions for ``time_ns`` (i64) and ``clock``, or none for a layer without a clock.
    """
    if groups.isdisjoint({"H", "unix", "ms", "boot"}):
        return []
    if groups & {"y", "yy", "unix", "ms"}:
        clock = "epoch"
    elif groups & {"mo", "mon"}:
        clock = "no_year"
    else:
        clock = "boot" if "boot" in groups else "no_date"
    new = _clock_ns(groups)
    better = pl.col("time_ns").is_null()
    if clock == "epoch":
        better |= pl.col("clock").ne_missing("epoch")
    better &= new.is_not_null()
    return [
        pl.when(better).then(new).otherwise("time_ns").alias("time_ns"),
        pl.when(better).then(pl.lit(clock)).otherwise("clock").alias("clock"),
    ]


def _number(group: str) -> pl.Expr:
    return pl.col(f"@{group}").str.strip_chars_start().cast(pl.Int64, strict=False)


def _clock_ns(groups: set[str]) -> pl.Expr:
    """Nanoseconds that the clock groups of a layer give; null where an optional clock is not there."""
    if "boot" in groups:
        parts = pl.col("@boot").str.strip_chars_start().str.split_exact(".", 1)
        fraction = parts.struct[1].str.pad_end(9, "0").cast(pl.Int64, strict=False)
        return parts.struct[0].cast(pl.Int64, strict=False) * _NS + fraction
    if "ms" in groups:
        return _number("ms") * 1_000_000
    fraction = pl.lit(0, dtype=pl.Int64)
    if "frac" in groups:
        fraction = pl.col("@frac").str.pad_end(9, "0").cast(pl.Int64, strict=False).fill_null(0)
    if "unix" in groups:
        return _number("unix") * _NS + fraction
    seconds = _number("H") * 3600 + _number("M") * 60 + _number("S")
    if groups & {"mo", "mon"}:
        seconds += _days(groups) * 86_400
    if "zone" in groups:
        seconds -= _zone_seconds()
    return seconds * _NS + fraction


def _days(groups: set[str]) -> pl.Expr:
    """Days since 1970, by arithmetic: a constructor of dates would raise on 31 February.

    Without a year: of 1970, which gives days since 1 January of a year of 365 days.
    """
    month = _number("mo")
    if "mon" in groups:
        month = pl.col("@mon").replace_strict(_MONTHS, default=None, return_dtype=pl.Int64)
    year = pl.lit(1970, dtype=pl.Int64)
    if "y" in groups:
        year = _number("y")
    elif "yy" in groups:
        year = _number("yy") + 2000
    year -= (month <= 2).cast(pl.Int64)  # the year begins in March, so that 29 February is its last day
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + _number("d") - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + of_year - 719_468


def _zone_seconds() -> pl.Expr:
    zone = pl.col("@zone")
    size = zone.str.slice(1, 2).cast(pl.Int64, strict=False) * 3600
    size += zone.str.slice(-2).cast(pl.Int64, strict=False) * 60
    return pl.when(zone.str.starts_with("-")).then(-size).otherwise(size).fill_null(0)

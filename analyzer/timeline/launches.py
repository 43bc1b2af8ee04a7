"""Kernel launches of a value printer as op records, so that window, suspects and reports work for them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

_NOT_BY_HAND = re.compile(r"(?:triton_[a-z]+_fused_|cpp_fused_|aoti_torch_|extern_kernels\.|torch\.ops\.)")


def is_kernel_launch() -> pl.Expr:
    """Rows of ``TIMELINE`` that a value printer told: the record ends on its own line, without a detail."""
    return (pl.col("body_last") == pl.col("launch_line")).fill_null(value=False)


def leaves_of(row: Mapping[str, object]) -> tuple[str, ...]:
    """What a kernel of a value printer does, by its name; empty = the row is no such launch.

    Inductor names its own kernels after the ops in them (``triton_poi_fused_embedding_0``), and the shim its
    calls (``aoti_torch_cuda_mm_out``). Any other name is a kernel that somebody wrote by hand.
    """
    if row.get("body_last") != row["launch_line"]:
        return ()
    return leaves_of_kernel(str(row["name"]))


def leaves_of_kernel(name: str) -> tuple[str, ...]:
    """What a kernel does, by its name; one that no compiler named was written by hand."""
    return (name,) if _NOT_BY_HAND.match(name) else (f"custom__{name}",)


def with_launches(ops: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """``OPS`` with the launches of value printers, by (source, line).

    Args:
        ops: ``OPS`` by (source, line).
        launches: ``LAUNCHES``: a launch is at the first line before it, its completion at the first after it.
    """
    if launches.is_empty():
        return ops
    shared = launches.with_columns(
        pl.col("kernel").cast(pl.Categorical).alias("name"),
        pl.lit("").cast(pl.Categorical).alias("detail"),
        pl.lit(None, dtype=pl.String).alias("clock"),
        pl.lit(None, dtype=pl.String).alias("stream"),
        pl.lit(value=True).alias("launch"),
        pl.col("line").alias("body_last"),
    )
    ended = shared.filter(pl.col("completion_line").is_not_null()).with_columns(
        pl.col("completion_line").alias("line"), pl.lit(value=False).alias("launch")
    )
    rows = pl.concat([shared, ended]).select(ops.columns).cast(ops.schema)
    return pl.concat([ops, rows]).sort("source", "line", "launch", maintain_order=True)

"""The printed values of one process: before and after each launch, and where the log lost its beginning."""

from __future__ import annotations

from typing import Any

import polars as pl

Row = dict[str, Any]
_CHANGED = (pl.col("min") != pl.col("was_min")) | (pl.col("max") != pl.col("was_max"))


class Prints:
    """The printed values of one process, before and after each launch side by side.

    ``pairs``: one row a value after a launch, with ``was_min`` and ``was_max`` before it (null = not in the
    log), ``changed`` and ``role``. ``lost``: values after a launch whose beginning is not in the log.
    """

    def __init__(self, prints: pl.DataFrame, launches: pl.DataFrame) -> None:
        """Pair them.

        Args:
            prints: ``PRINTS`` of the process, by (line, part), only those that can be believed.
            launches: ``LAUNCHES`` plus ``step`` (null = not known).
        """
        self.launches = launches
        tensors = prints.filter(pl.col("min").is_not_null() & pl.col("max").is_not_null())
        tensors = tensors.join(launches.select("id", "step"), on="id", how="left", maintain_order="left")
        after = tensors.filter(pl.col("event") == "after")
        self.before = tensors.filter(pl.col("event") == "before")
        self.after = after.filter(pl.col("id").is_not_null())
        self.lost = after.filter(pl.col("id").is_null() & (pl.col("line") <= _first_line(launches)))
        given = self.before.select(
            "id", "arg", "repeat", pl.col("min").alias("was_min"), pl.col("max").alias("was_max")
        )
        joined = self.after.join(given, on=["id", "arg", "repeat"], how="left", maintain_order="left")
        told = _roles(joined)
        self.pairs = joined.with_columns(_CHANGED.fill_null(value=False).alias("changed")).join(
            told, on=["kernel", "arg"], how="left", maintain_order="left"
        )
        self.roles = {(kernel, arg): role for kernel, arg, role in told.iter_rows()}
        self.whole = _begins_whole(prints, launches)

    def role(self, kernel: str, arg: str) -> str | None:
        """Whether a kernel writes an argument ("written") or only reads it ("read"); null = not known."""
        return self.roles.get((kernel, arg))

    def given_to(self, launch: int) -> list[Row]:
        """Values before a launch, in the order of its arguments."""
        return self.before.filter(pl.col("id") == launch).to_dicts()

    def execution(self, rows: pl.DataFrame, row: Row) -> pl.DataFrame:
        """Rows of the same execution of the graph."""
        return rows if row["step"] is None else rows.filter(pl.col("step") == row["step"])

    def same_run(self, rows: pl.DataFrame, row: Row) -> pl.DataFrame:
        """Rows of the same execution of the graph, above a row."""
        return self.execution(rows.filter(pl.col("id") < row["id"]), row)

    def same_run_after(self, row: Row) -> pl.DataFrame:
        """Launches of the same execution of the graph that have printed values, behind that of a row."""
        return self.execution(self.after.filter(pl.col("id") > row["id"]), row)

    def is_cut(self, row: Row) -> bool:
        """Whether the beginning of the execution of a row is not in the log: a tail, or a rotated file."""
        return not self.whole and row["step"] == self.launches["step"][0]


def _first_line(launches: pl.DataFrame) -> int:
    return int(launches["line"].min() or 0)  # type: ignore[arg-type]


def _begins_whole(prints: pl.DataFrame, launches: pl.DataFrame) -> bool:
    """Whether the first execution is in the log from its start.

    The C++ wrapper prints the inputs of the model first. What comes after a launch without what came before
    it shows a beginning that was cut off, in the Python wrapper too.
    """
    above = prints.filter(pl.col("line") <= _first_line(launches))
    if above.filter((pl.col("event") == "after") & pl.col("id").is_null()).height:
        return False
    first = prints.filter(pl.col("id") == launches["id"].min()) if launches.height else prints.clear()
    given = first.filter(pl.col("event") == "before")["arg"]
    if first.filter((pl.col("event") == "after") & ~pl.col("arg").is_in(given.implode())).height:
        return False
    return not first["form"].eq("tensor").any() or above["event"].eq("input").any()


def _roles(pairs: pl.DataFrame) -> pl.DataFrame:
    """A buffer that changed in any launch is written; one that never did, with sound values, is read.

    Returns:
        kernel, arg, role, one row for each that is known.
    """
    sound = pl.col("was_min").is_finite() & pl.col("was_max").is_finite()
    told = (
        pairs.filter(pl.col("was_min").is_not_null())
        .group_by("kernel", "arg")
        .agg(_CHANGED.any().alias("written"), sound.any().alias("sound"))
        .filter(pl.col("written") | pl.col("sound"))
    )
    role = pl.when("written").then(pl.lit("written")).otherwise(pl.lit("read")).alias("role")
    return told.select("kernel", "arg", role)

"""What printed tensor values prove about NaN and Inf: which kernel made the first one (design.md rule 6).

Only values that a kernel can have read or has written count. What stands in an output buffer before its
kernel ran is garbage (observed.md 29); CPU and CUDA allocators hand out memory with NaN of older work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf, isnan
from typing import Any, Literal

import msgspec
import polars as pl

from analyzer.schema import Value

Row = dict[str, Any]
_BUFFER = re.compile(r"\bbuf[0-9]+\b")
_STALE = 200  # prints that are looked at one by one
_MASKS = re.compile(r"_(?:where|masked|fill|full|scalar_tensor|tril|triu|amin|amax|max|min)(?=_)")


class Origin(Value):
    """Who made a bad value: a kernel, the caller, or a kernel that the printer does not show."""

    who: Literal["kernel", "caller", "not_shown"]
    arg: str
    line: int
    launch: int | None = None


class Flaw(Value):
    """A bad value that the printer shows.

    ``launch``: the kernel whose output first held it, or that is given the bad index; ``line``: the print
    that shows it. ``came_as``: what ``origin`` made, where a kernel turned an Inf into NaN. ``sure`` = false:
    something else can explain it, see ``notes``. ``table`` (index only): the tensor that can be indexed, with
    its ``extent``.
    """

    kind: Literal["nan", "inf", "index"]
    launch: int
    arg: str
    line: int
    value: float
    origin: Origin
    sure: bool
    came_as: Literal["nan", "inf"] | None = None
    notes: tuple[str, ...] = ()
    table: str | None = None
    extent: int | None = None


class Prints:
    """The printed values of one process, before and after each launch side by side."""

    def __init__(self, prints: pl.DataFrame, launches: pl.DataFrame) -> None:
        """Pair them.

        Args:
            prints: ``PRINTS`` of the process, by (line, part), only those that can be believed.
            launches: ``LAUNCHES`` plus ``step`` (null = not known).
        """
        self.launches = launches
        tensors = prints.filter(pl.col("min").is_not_null() & pl.col("max").is_not_null())
        tensors = tensors.join(launches.select("id", "step"), on="id", how="left", maintain_order="left")
        self.before = tensors.filter(pl.col("event") == "before")
        self.after = tensors.filter(pl.col("event") == "after")
        given = self.before.select(
            "id", "arg", "repeat", pl.col("min").alias("was_min"), pl.col("max").alias("was_max")
        )
        self.pairs = self.after.join(given, on=["id", "arg", "repeat"], how="left", maintain_order="left")
        self.roles = _roles(self.pairs)

    def role(self, kernel: str, arg: str) -> str | None:
        """Whether a kernel writes an argument ("written") or only reads it ("read"); null = not known."""
        return self.roles.get((kernel, arg))

    def given_to(self, launch: int) -> list[Row]:
        """Values before a launch, in the order of its arguments."""
        return self.before.filter(pl.col("id") == launch).to_dicts()

    def same_run(self, rows: pl.DataFrame, row: Row) -> pl.DataFrame:
        """Rows of the same execution of the graph, above a row."""
        earlier = rows.filter(pl.col("id") < row["id"])
        return earlier if row["step"] is None else earlier.filter(pl.col("step") == row["step"])

    def same_run_after(self, row: Row) -> pl.DataFrame:
        """Launches of the same execution of the graph that have printed values, behind that of a row."""
        later = self.after.filter(pl.col("id") > row["id"])
        return later if row["step"] is None else later.filter(pl.col("step") == row["step"])


def is_buffer(arg: str) -> bool:
    """Whether an argument is memory of the graph itself; all others come from the caller or are weights."""
    return bool(_BUFFER.search(arg))


def _roles(pairs: pl.DataFrame) -> dict[tuple[str, str], str]:
    """A buffer that changed in any launch is written; one that never did, with sound values, is read."""
    changed = (pl.col("min") != pl.col("was_min")) | (pl.col("max") != pl.col("was_max"))
    sound = pl.col("was_min").is_finite() & pl.col("was_max").is_finite()
    told = (
        pairs.filter(pl.col("was_min").is_not_null())
        .group_by("kernel", "arg")
        .agg(changed.any(), sound.any().alias("sound"))
    )
    return {
        (kernel, arg): "written" if written else "read"
        for kernel, arg, written, known in told.iter_rows()
        if written or known
    }


_NAN = pl.col("min").is_nan() | pl.col("max").is_nan()
_WAS_NAN = (pl.col("was_min").is_nan() | pl.col("was_max").is_nan()).fill_null(value=False)


def find_bad_value(prints: Prints) -> Flaw | None:
    """The first NaN that a kernel left in its output, or an Inf where there is no NaN.

    A NaN counts if it was not there before the launch. One that was there already, in a buffer, was garbage
    or came from a kernel that is not shown; it counts only if it spread or was the last thing written.
    """
    bad = prints.pairs.filter(_NAN)
    if bad.is_empty():
        return _first_infinity(prints)
    fresh = bad.filter(~_WAS_NAN & pl.col("was_min").is_not_null()).head(1).to_dicts()
    if fresh:
        return _made(prints, fresh[0], bad)
    stale = [row for row in bad.head(_STALE).to_dicts() if is_buffer(row["arg"])]
    return next((flaw for row in stale if (flaw := _stale(prints, row, bad))), None)


def _made(prints: Prints, row: Row, bad: pl.DataFrame) -> Flaw:
    """A kernel left a NaN where none was: made by itself, unless it was given one."""
    own = Origin(who="kernel", arg=row["arg"], line=row["line"], launch=row["id"])
    given = prints.given_to(row["id"])
    for one in given:
        if one["arg"] != row["arg"] and _is_nan(one) and (origin := _origin_of_nan(prints, one, bad)):
            return _flaw("nan", row, origin, sure=origin.who == "caller")
    infinite = _infinite_input(prints, row, given)
    if infinite is not None and infinite[1] == inf:
        note = f"{row['kernel']} was given Inf and made NaN of it; an Inf by itself can be meant"
        flaw = _flaw("nan", row, infinite[0], sure=False, notes=(note,))
        return msgspec.structs.replace(flaw, came_as="inf")
    notes = []
    if infinite is not None:
        notes.append(f"its input {infinite[0].arg} held -Inf (line {infinite[0].line}), as a mask does")
    shown = any(one["arg"] != row["arg"] for one in given)
    if not shown:
        notes.append("the printer shows only the output of this kernel; no value printed before it is NaN")
    garbage = [one["arg"] for one in given if one["arg"] != row["arg"] and _is_nan(one)]
    unsure = [arg for arg in garbage if not _overwritten(prints, row, arg)]
    if unsure:
        notes.append(
            f"{unsure[0]} held NaN before the launch: not yet written, or given by a kernel not shown"
        )
    later = prints.same_run_after(row)
    spread = later.is_empty() or bad.filter(pl.col("id").is_in(later["id"].implode())).height > 0
    if not spread:
        notes.append("no value printed later in this execution is NaN: it was not used, or masked on purpose")
    return _flaw("nan", row, own, sure=shown and spread and not unsure, notes=tuple(notes))


def _flaw(
    kind: Literal["nan", "inf"], row: Row, origin: Origin, *, sure: bool, notes: tuple[str, ...] = ()
) -> Flaw:
    value = float("nan") if kind == "nan" else inf
    return Flaw(
        kind=kind,
        launch=row["id"],
        arg=row["arg"],
        line=row["line"],
        value=value,
        origin=origin,
        sure=sure,
        notes=notes,
    )


def _is_nan(row: Row) -> bool:
    return isnan(row["min"]) or isnan(row["max"])


def _overwritten(prints: Prints, row: Row, arg: str) -> bool:
    """Whether what was in an argument before the launch was garbage: the kernel writes it."""
    return prints.role(row["kernel"], arg) == "written"


def _origin_of_nan(prints: Prints, given: Row, bad: pl.DataFrame) -> Origin | None:
    """Who made a NaN that a kernel was given; null = it was garbage in a buffer that the kernel writes."""
    arg = given["arg"]
    earlier = prints.same_run(bad, given).filter(pl.col("arg") == arg).head(1).to_dicts()
    if earlier:
        return Origin(who="kernel", arg=arg, line=earlier[0]["line"], launch=earlier[0]["id"])
    if not is_buffer(arg):
        return Origin(who="caller", arg=arg, line=given["line"])
    if prints.role(given["kernel"], arg) == "read" or (
        given["form"] == "python" and prints.role(given["kernel"], arg) is None
    ):
        return Origin(who="not_shown", arg=arg, line=given["line"])
    return None


def _stale(prints: Prints, row: Row, bad: pl.DataFrame) -> Flaw | None:
    """A NaN that stood in the buffer before the launch as well."""
    role = prints.role(row["kernel"], row["arg"])
    later = prints.same_run_after(row)
    spread = bad.filter(pl.col("id").is_in(later["id"].implode())).height
    if later.height and not spread:
        return None
    if role == "written" or (role is None and row["form"] != "python"):
        note = f"{row['arg']} held NaN before the launch too: the kernel wrote it again, or left it as it was"
        origin = Origin(who="kernel", arg=row["arg"], line=row["line"], launch=row["id"])
        return _flaw("nan", row, origin, sure=False, notes=(note,))
    return _flaw("nan", row, Origin(who="not_shown", arg=row["arg"], line=row["line"]), sure=False)


def _infinite_input(prints: Prints, row: Row, given: Sequence[Row]) -> tuple[Origin, float] | None:
    """Where the first Inf of this execution came from, if the kernel was given one; with its sign.

    Buffers are reused under new names, so that an input is known by its values too: what an earlier kernel
    left with the same least and largest value is no garbage.
    """
    earlier = prints.same_run(prints.pairs, row)
    infinite = [one for one in given if inf in (one["max"], -one["min"])]
    known = [one for one in infinite if not is_buffer(one["arg"]) or _left_by(earlier, one).height]
    if not known:
        return None
    positive = [one for one in known if one["max"] == inf]
    if not positive:
        return _origin_of_infinity(earlier, known[0]), -inf
    fresh = earlier.filter((pl.col("max") == inf) & (pl.col("was_max") != inf)).head(1).to_dicts()
    if not fresh:
        return _origin_of_infinity(earlier, positive[0]), inf
    made = Origin(who="kernel", arg=fresh[0]["arg"], line=fresh[0]["line"], launch=fresh[0]["id"])
    given_inf = [
        one for one in prints.given_to(fresh[0]["id"]) if one["max"] == inf and not is_buffer(one["arg"])
    ]
    return _origin_of_infinity(earlier, given_inf[0]) if given_inf else made, inf


def _left_by(earlier: pl.DataFrame, given: Row) -> pl.DataFrame:
    same = (pl.col("min") == given["min"]) & (pl.col("max") == given["max"])
    return earlier.filter(same & pl.col("arg").str.contains(_BUFFER.pattern))


def _origin_of_infinity(earlier: pl.DataFrame, given: Row) -> Origin:
    if not is_buffer(given["arg"]):
        return Origin(who="caller", arg=given["arg"], line=given["line"])
    writer = _left_by(earlier, given).row(0, named=True)
    return Origin(who="kernel", arg=writer["arg"], line=writer["line"], launch=writer["id"])


def _first_infinity(prints: Prints) -> Flaw | None:
    """+Inf in an output of sound inputs. -Inf alone is what masks are made of, and so is +Inf in some."""
    fresh = prints.pairs.filter((pl.col("max") == inf) & (pl.col("was_max") != inf)).head(1).to_dicts()
    if not fresh or _MASKS.search(f"{fresh[0]['kernel']}_"):
        return None
    row = fresh[0]
    given = [one for one in prints.given_to(row["id"]) if one["arg"] != row["arg"]]
    if any(inf in (one["max"], -one["min"]) or _is_nan(one) for one in given):
        return None
    own = Origin(who="kernel", arg=row["arg"], line=row["line"], launch=row["id"])
    return _flaw("inf", row, own, sure=False, notes=("an Inf is no error by itself",))

"""What printed tensor values prove about NaN and Inf: which kernel made the first one (design.md rule 6).

Only values that a kernel can have read or has written count. What stands in an output buffer before its
kernel ran is garbage (observed.md 29); CPU and CUDA allocators hand out memory with NaN of older work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf, isnan, nan
from typing import Literal

import msgspec
import polars as pl

from analyzer.values.flaws import BUFFER, Flaw, Origin, is_buffer
from analyzer.values.prints import Prints, Row

# Calls of the library: arguments that are views are not printed (PyTorch 2.11 to 2.13, ``addmm``).
_EXTERN = re.compile(r"aoti_torch_|extern_kernels\.|\w+(?:\.\w+)*::")
_STALE = 200  # prints that are looked at one by one

_NAN = pl.col("min").is_nan() | pl.col("max").is_nan()
_WAS_NAN = (pl.col("was_min").is_nan() | pl.col("was_max").is_nan()).fill_null(value=False)
_WRITTEN = pl.col("changed") | (pl.col("role") == "written").fill_null(value=False)


def find_bad_value(prints: Prints) -> Flaw | None:
    """The first NaN that a kernel left in its output, and that the execution ended with.

    A NaN counts if it was not there before the launch. One that was there already, in a buffer, was garbage
    or came from a kernel that is not shown; it counts only if it spread or was the last thing written. One
    that a later kernel replaced (``nan_to_num``, a mask) was meant; so was an Inf that became no NaN.
    """
    bad = prints.pairs.filter(_NAN)
    fresh = bad.filter(~_WAS_NAN & pl.col("was_min").is_not_null())
    if fresh.height:
        firsts = fresh.unique("step", keep="first", maintain_order=True).head(_STALE).to_dicts()
        return next((flaw for row in firsts if (flaw := _of_execution(prints, row, fresh, bad))), None)
    stale = [row for row in bad.head(_STALE).to_dicts() if is_buffer(row["arg"])]
    return next((flaw for row in stale if (flaw := _stale(prints, row, bad))), None)


def _of_execution(prints: Prints, row: Row, fresh: pl.DataFrame, bad: pl.DataFrame) -> Flaw | None:
    """The NaN that an execution ended with, out of those that began in it."""
    end = _end(prints, row)
    given = prints.before.filter(_NAN)["id"].unique()
    began = prints.execution(fresh, row).filter(~pl.col("id").is_in(given.implode()))
    while end != "replaced":
        later = began.filter(pl.col("id") > row["id"]).head(1).to_dicts()
        if not later or _end(prints, row, before=later[0]["id"]) != "replaced":
            flaw = _made(prints, row, bad)
            note = "the last kernel was given the NaN, and what it made of it is not printed"
            if end == "held":
                return flaw
            return msgspec.structs.replace(flaw, sure=False, notes=(*flaw.notes, note))
        row = later[0]
    return None


def _end(prints: Prints, row: Row, before: int | None = None) -> Literal["held", "replaced", "not_shown"]:
    """What became of a NaN until the end of its execution, or until the launch ``before``.

    Held: it is in what the last launch wrote, or in a buffer that no later launch was given.
    """
    stop = pl.lit(value=True) if before is None else pl.col("id") < before
    rows = prints.execution(prints.pairs.filter((pl.col("id") >= row["id"]) & stop), row)
    last = rows.filter(pl.col("id") == rows["id"].max())
    owned = pl.col("arg").str.contains(BUFFER.pattern) | _WRITTEN
    seen = rows.filter(pl.col("id") < last["id"].max())["arg"]  # not written again under the same name
    perhaps = pl.col("role").is_null() & ~pl.col("arg").is_in(seen.implode())
    if last.filter(_NAN & owned & (_WRITTEN | perhaps)).height:
        return "held"
    if last.filter(_NAN & owned).height and not last.filter(_WRITTEN).height:
        return "not_shown"
    given = prints.execution(prints.before.filter((pl.col("id") > row["id"]) & stop), row)
    used = given.select("arg", pl.col("id").alias("used"))
    read = int(given.filter(_NAN)["id"].max() or 0)  # type: ignore[arg-type]
    left = rows.filter(_NAN & _WRITTEN & (pl.col("id") >= read)).join(used, on="arg", how="left")
    unused = left.group_by("id", "arg").agg((pl.col("used") > pl.col("id")).any())
    return "replaced" if unused.filter(~pl.col("used").fill_null(value=False)).is_empty() else "held"


def _made(prints: Prints, row: Row, bad: pl.DataFrame) -> Flaw:
    """A kernel left a NaN where none was: made by itself, unless it was given one."""
    given = prints.given_to(row["id"])
    for one in given:
        if one["arg"] != row["arg"] and _is_nan(one) and (origin := _origin_of_nan(prints, one, bad)):
            if prints.is_cut(row) and _was_there(prints, origin):
                return _of_the_lost(row, one)
            return _flaw(row, origin, sure=origin.who == "caller")
    shown = any(one["arg"] != row["arg"] for one in given)
    infinite = _infinite_input(prints, row, given)
    unknown = infinite is None and not (shown and shows_inputs(row["kernel"]))
    if (cut := _cut_off(prints, row, unknown=unknown)) is not None:
        return cut
    if infinite is not None and infinite[1] == inf:
        if prints.is_cut(row) and not _is_shown_maker(prints, infinite[0]):
            return _of_the_lost(row, row, came_as="inf")
        note = f"{row['kernel']} was given Inf and made NaN of it; an Inf by itself can be meant"
        flaw = _flaw(row, infinite[0], sure=False, notes=(note,))
        return msgspec.structs.replace(flaw, came_as="inf")
    own = Origin(who="kernel", arg=row["arg"], line=row["line"], launch=row["id"])
    doubts = _doubts(prints, row, given, shown=shown)
    masked: tuple[str, ...] = ()
    if infinite is not None:
        masked = (f"its input {infinite[0].arg} held -Inf (line {infinite[0].line}), as a mask does",)
    return _flaw(row, own, sure=not doubts, notes=(*masked, *doubts))


def _doubts(prints: Prints, row: Row, given: Sequence[Row], *, shown: bool) -> tuple[str, ...]:
    """What else can explain a NaN in an output of a kernel."""
    notes = []
    if not shown:
        notes.append("the printer shows only the output of this kernel; no value printed before it is NaN")
    elif not shows_inputs(row["kernel"]):
        notes.append("the printer shows only a part of what this kernel was given; nothing of it was NaN")
    others = [one for one in given if one["arg"] != row["arg"] and not _overwritten(prints, row, one["arg"])]
    wrong = [one for one in others if _is_nan(one) or (is_buffer(one["arg"]) and one["max"] == inf)]
    if wrong:
        what = "NaN" if _is_nan(wrong[0]) else "Inf"
        held = f"{wrong[0]['arg']} held {what} before the launch"
        notes.append(f"{held}: not yet written, or given by a kernel not shown")
    if _without_beginning(prints, row):
        notes.append("some of what was printed before the launch is not in the log")
    later = prints.same_run_after(row)
    bad = later.filter(_NAN)
    if later.height and bad.is_empty():
        notes.append("no value printed later in this execution is NaN: it was not used, or masked on purpose")
    return tuple(notes)


def _without_beginning(prints: Prints, row: Row) -> list[Row]:
    """Arguments that were printed after a launch, and not before it."""
    return prints.pairs.filter((pl.col("id") == row["id"]) & pl.col("was_min").is_null()).to_dicts()


def _cut_off(prints: Prints, row: Row, *, unknown: bool) -> Flaw | None:
    """A NaN that can have come from above the beginning of the log; null = all that counts is in it.

    A kernel whose inputs are not printed (``unknown``) can have been given anything in an execution that
    began above it.
    """
    wrong = [one for one in _without_beginning(prints, row) if _is_nan(one) or one["max"] == inf]
    if not wrong and prints.is_cut(row):
        earlier = prints.same_run(prints.pairs, row)
        given = [one for one in prints.given_to(row["id"]) if is_buffer(one["arg"])]
        infinite = [one for one in given if one["max"] == inf and not _left_by(earlier, one).height]
        held = [one for one in given if _is_nan(one) and not _overwritten(prints, row, one["arg"])]
        wrong = held or infinite
        wrong = wrong or (prints.lost.filter(_NAN).head(1).to_dicts() or [row] if unknown else [])
    if not wrong:
        return None
    return _of_the_lost(row, wrong[0])


def _of_the_lost(row: Row, shown: Row, came_as: Literal["inf"] | None = None) -> Flaw:
    """A NaN of which only what followed is in the log."""
    origin = Origin(who="not_shown", arg=shown["arg"], line=shown["line"])
    return msgspec.structs.replace(_flaw(row, origin, sure=False), cut=True, came_as=came_as)


def shows_inputs(kernel: str) -> bool:
    """Whether the printer shows all tensors that a kernel is given; of an extern one it leaves out views."""
    return not _EXTERN.match(kernel)


def _was_there(prints: Prints, origin: Origin) -> bool:
    """Whether the NaN of a kernel stood in its output before the launch, or can have been given to it."""
    if origin.launch is None:
        return False
    own = prints.pairs.filter((pl.col("id") == origin.launch) & (pl.col("arg") == origin.arg))
    return own.filter(~_WAS_NAN).is_empty() or not _is_shown_maker(prints, origin)


def _is_shown_maker(prints: Prints, origin: Origin) -> bool:
    """Whether who made a value could not have been given it."""
    if origin.launch is None:
        return origin.who == "caller"
    kernel = prints.launches.filter(pl.col("id") == origin.launch)["kernel"][0]
    return shows_inputs(kernel)


def _flaw(row: Row, origin: Origin, *, sure: bool, notes: tuple[str, ...] = ()) -> Flaw:
    return Flaw(
        kind="nan",
        launch=row["id"],
        arg=row["arg"],
        line=row["line"],
        value=nan,
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
    if (later.height and not spread) or _end(prints, row) == "replaced":
        return None
    passed = [one for one in prints.given_to(row["id"]) if _is_nan(one) and not is_buffer(one["arg"])]
    if passed:
        return _flaw(row, Origin(who="caller", arg=passed[0]["arg"], line=passed[0]["line"]), sure=False)
    outside = Origin(who="not_shown", arg=row["arg"], line=row["line"])
    if prints.is_cut(row):
        return _of_the_lost(row, row)
    if role == "written" or (role is None and row["form"] != "python"):
        note = f"{row['arg']} held NaN before the launch too: the kernel wrote it again, or left it as it was"
        origin = Origin(who="kernel", arg=row["arg"], line=row["line"], launch=row["id"])
        return _flaw(row, origin, sure=False, notes=(note,))
    return _flaw(row, outside, sure=False)


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
    return earlier.filter(same & pl.col("arg").str.contains(BUFFER.pattern))


def _origin_of_infinity(earlier: pl.DataFrame, given: Row) -> Origin:
    if not is_buffer(given["arg"]):
        return Origin(who="caller", arg=given["arg"], line=given["line"])
    writer = _left_by(earlier, given).row(0, named=True)
    return Origin(who="kernel", arg=writer["arg"], line=writer["line"], launch=writer["id"])

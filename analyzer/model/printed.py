"""What AOTInductor's value printer told: launches and tensors."""

from __future__ import annotations

import msgspec
import polars as pl

from analyzer.schema import Value

LAUNCHES = {
    "source": pl.UInt16(),
    "process": pl.String(),
    "id": pl.UInt64(),
    "kernel": pl.String(),
    "occurrence": pl.UInt32(),
    "level": pl.UInt8(),
    "line": pl.UInt32(),
    "before_last": pl.UInt32(),
    "completion_line": pl.UInt32(),
    "after_last": pl.UInt32(),
    "time_ns": pl.Int64(),
}
PRINTS = {
    "source": pl.UInt16(),
    "process": pl.String(),
    "id": pl.UInt64(),
    "event": pl.String(),
    "kernel": pl.String(),
    "arg": pl.String(),
    "repeat": pl.UInt32(),
    "form": pl.String(),
    "line": pl.UInt32(),
    "part": pl.UInt32(),
    "value": pl.String(),
    "min": pl.Float64(),
    "max": pl.Float64(),
    "end": pl.UInt32(),
}


class KernelLog(msgspec.Struct, frozen=True, kw_only=True):
    """What AOTInductor's value printer said (observed.md 29-34); columnar, for millions of prints.

    ``launches``: one row a kernel launch, by (source, process, id). ``id`` = ordinal in its process,
    ``occurrence`` counts one name from 1, ``level`` = 1 (values saved), 2 (printed) or 3 (names only),
    ``line``..``before_last`` = its first and last line before the launch, ``completion_line``..``after_last``
    = those after it (null = none in the log).
    ``prints``: one row a value, by (source, line, part). ``id`` = its launch, null for model inputs
    (``event`` = "input") and for lines whose launch is not in the log; ``repeat`` counts one argument
    within one event;
    ``value`` = text of a scalar; ``min``, ``max`` null = not printed; ``end`` = last line of its body, null =
    the value was not read back to the end.
    """

    launches: pl.DataFrame = pl.DataFrame(schema=LAUNCHES)
    prints: pl.DataFrame = pl.DataFrame(schema=PRINTS)

    def level(self) -> int | None:
        """The least level of the printer, null if it printed nothing."""
        return min(self.launches["level"].unique().to_list(), default=None)


class PrintedTensor(Value):
    """One tensor as the value printer showed it. Null = not printed; ``values`` flat, small tensors only."""

    name: str
    line: int
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    elements: int | None = None
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    values: tuple[float, ...] | None = None


class KernelLaunch(Value):
    """One launch of a kernel with the tensors printed before and after it (see ``KernelLog``)."""

    source: int
    process: str
    id: int
    kernel: str
    occurrence: int
    level: int
    line: int
    completion_line: int | None
    before: tuple[PrintedTensor, ...] = ()
    after: tuple[PrintedTensor, ...] = ()

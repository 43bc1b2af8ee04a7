"""A bad value that the printer shows, and who made it."""

from __future__ import annotations

import re
from typing import Literal

from analyzer.schema import Value

BUFFER = re.compile(r"\bbuf[0-9]+\b")


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
    its ``extent``. ``cut``: the log begins inside the execution.
    """

    kind: Literal["nan", "index"]
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
    cut: bool = False


def is_buffer(arg: str) -> bool:
    """Whether an argument is memory of the graph itself; all others come from the caller or are weights."""
    return bool(BUFFER.search(arg))

"""Lines that belong to the tagged line above them (formats.md 3.2, 3.12).

SGLang puts its tag on the first line of a traceback only; TGI's launcher prints what a dead shard had written
in one record and names the rank at its end. Both blocks belong to one process, which their lines do not name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import polars as pl

from analyzer.ingest.envelope import strip
from analyzer.numbers import MAX_RANK, natural

MAX_BLOCKS = 256  # of a source: one a rank and run
MAX_LINES = 600  # a chained traceback with C++ frames
_TRACEBACK = "Traceback (most recent call last):"
_SHARD_OUTPUT = "Shard complete standard error output:"
_LAUNCHER = ("Shard ", "Shutting down shards")  # how its next record begins
_RANK = re.compile(r" rank=([0-9]+)$")
_GIVEN = ("process", "rank", "time_ns", "clock")
# What may follow a blank line inside one error: another link of the chain, or C++ frames (formats.md 3.1).
_CHAIN = (
    "During handling of the above exception,",
    "The above exception was the direct cause",
    _TRACEBACK,
)
_GOES_ON = (*_CHAIN, "Exception raised from ", "frame #")


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A block: those ``lines`` that name nobody but ``inside`` (a container, or '') are of ``process``."""

    lines: tuple[int, ...]
    inside: str
    process: str
    rank: int | None
    time_ns: int | None
    clock: str | None


class Owners:
    """The blocks of one source, by line."""

    def __init__(self, blocks: Sequence[Owner] = ()) -> None:
        self.by_line = {line: block for block in reversed(blocks) for line in block.lines}

    def of(self, line: int, process: str) -> Owner | None:
        """The block that a line belongs to, if the line itself names nobody else."""
        block = self.by_line.get(line)
        return block if block is not None and process == block.inside else None


def find_owners(gated: pl.DataFrame, raw: Callable[[int, int], list[str]]) -> Owners:
    """The blocks of a source.

    Args:
        gated: ``LINES`` that passed the gate; the heads of the blocks are among them.
        raw: Gives the lines from one number to another as they are in the file.
    """
    text, by_sglang = pl.col("text"), pl.col("envelope").str.ends_with("sglang")
    traced = text.str.ends_with(_TRACEBACK) & (pl.col("process") != "") & by_sglang
    heads = gated.filter(traced | text.str.ends_with(_SHARD_OUTPUT))
    heads = heads.with_columns(pl.col("line").shift(-1).over("process").alias("next")).head(MAX_BLOCKS)
    below = _Below(heads, raw)
    blocks = [_block(head, below.of(head)) for head in heads.iter_rows(named=True)]
    return Owners([block for block in blocks if block is not None])


def adopt(frame: pl.DataFrame, owners: Owners) -> pl.DataFrame:
    """``LINES`` with process, rank and time of the blocks that lines belong to.

    Args:
        frame: ``LINES``, by line.
        owners: The blocks of its source.
    """
    if not owners.by_line:
        return frame
    given = {f"{name}@": frame.schema[name] for name in _GIVEN}
    schema = {"line": pl.UInt32(), "inside": pl.String(), **given}
    rows = [
        (line, block.inside, block.process, block.rank, block.time_ns, block.clock)
        for line, block in owners.by_line.items()
    ]
    blocks = pl.DataFrame(rows, schema=schema, orient="row")
    joined = frame.join(blocks, on="line", how="left", maintain_order="left")
    mine = (pl.col("process") == pl.col("inside")).fill_null(value=False)
    own = [pl.when(mine).then(_given(name)).otherwise(name).alias(name) for name in _GIVEN]
    return joined.with_columns(own).select(frame.columns)


def _given(name: str) -> pl.Expr:
    """The process is that of the block; what a line tells itself (a container's clock) stays."""
    return pl.col(f"{name}@") if name == "process" else pl.coalesce(name, f"{name}@")


class _Below:
    """The lines below the heads, stripped all at once: one head at a time, 256 of them cost seconds."""

    def __init__(self, heads: pl.DataFrame, raw: Callable[[int, int], list[str]]) -> None:
        numbers: list[int] = []
        texts: list[str] = []
        for first, last in _spans(heads["line"].to_list()):
            found = raw(first, last)
            numbers.extend(range(first, first + len(found)))
            texts.extend(found)
        lines = pl.DataFrame({"line": numbers, "raw": texts}, schema={"line": pl.UInt32, "raw": pl.String})
        stripped = strip(lines.select(pl.lit(0, dtype=pl.UInt16).alias("source"), "line", "raw"))
        self._lines = stripped.select("line", "text", "envelope")

    def of(self, head: dict[str, Any]) -> list[tuple[int, str, bool]]:
        """Number, text, and whether a line has only what transports put before it.

        They end before the next head of the same process.
        """
        line = head["line"]
        end = min(line + MAX_LINES, (head["next"] or line + MAX_LINES + 1) - 1)
        at = self._lines["line"].search_sorted(line + 1)
        mine = self._lines.slice(at, self._lines["line"].search_sorted(end, "right") - at)
        return mine.select("line", "text", pl.col("envelope") == head["envelope"].rpartition("+")[0]).rows()


def _spans(heads: Sequence[int]) -> list[tuple[int, int]]:
    """First and last line of what may be below the heads, each line once."""
    spans: list[tuple[int, int]] = []
    for head in heads:
        joined = bool(spans) and head <= spans[-1][1]
        first = spans.pop()[0] if joined else head + 1
        spans.append((first, head + MAX_LINES))
    return spans


def _block(head: dict[str, Any], below: Sequence[tuple[int, str, bool]]) -> Owner | None:
    inside, process, rank = head["process"], head["process"], head["rank"]
    if head["text"].endswith(_TRACEBACK):
        inside = process.rpartition("/")[0]
        lines = _traceback(below)
    else:
        lines = [head["line"]]
        if rank is None:  # else the launcher writes JSON: the whole block is in the line of the head
            rank, more = _output(below)
            lines.extend(more)
        process = f"{process}/rank{rank}".removeprefix("/")
        if rank is None:
            return None
    clock = {"time_ns": head["time_ns"], "clock": head["clock"]}
    return Owner(lines=tuple(lines), inside=inside, process=process, rank=rank, **clock)


def _traceback(below: Sequence[tuple[int, str, bool]]) -> list[int]:
    """Lines of the error: the exception's text ends at a blank line unless the chain goes on."""
    lines: list[int] = []
    raised = blank = False
    for number, text, plain in below:
        if not plain:
            continue
        if not text.strip():
            blank = True
            continue
        if blank and raised and not text.startswith(_GOES_ON):
            break
        raised = not text.startswith((" ", *_CHAIN))
        blank = False
        lines.append(number)
    return lines


def _output(below: Sequence[tuple[int, str, bool]]) -> tuple[int | None, list[int]]:
    """Rank and lines up to the one that names the rank; null = another record of the launcher comes first."""
    lines: list[int] = []
    for number, text, _ in below:
        if text.startswith(_LAUNCHER):
            break
        lines.append(number)
        found = _RANK.search(text)
        if found:
            return natural(found.group(1), MAX_RANK), lines
    return None, []

"""Asserts of device code: CUDA, HIP, Triton, Inductor, DeepEP, DeepGEMM (formats.md 3.2, observed.md 23, 35).

The device speaks: exact for kernel and expression. It prints a line for each thread that failed, in the order
in which they failed; Polars cuts out block and thread, so that only distinct texts go through Lark.
DeepEP and DeepGEMM print their own line and then trap, which calls report as 719.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import FaultRecord, KernelState, Reading
from analyzer.numbers import need_integer
from analyzer.schema import SourceFrame
from analyzer.speech.mentions import is_code
from analyzer.tables.kernels import names_kernel
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses
from analyzer.witnesses.dsa_body import FOUND, read_dsa

NAME = "device_assert"
CUDA, HIP = "] Assertion ", "Device-side assertion "
TRAPPED, _CONDITION = "Assertion failed: ", ", condition: "  # EP_DEVICE_ASSERT, DG_DEVICE_ASSERT
ASSERT, TRAP = 710, 719  # codes of the reports that follow
_HOST_FILES = (".cpp", ".cc", ".cxx", ".c")  # compiled for the host alone
_COMMENT = re.compile(r"^\s*(?:#|\*|//|/\*)(?:\s|$)|(?:^|\s)(?://|/\*)\s")
_THREAD = (
    r"^(.*?): block: \[(-?[0-9]+),(-?[0-9]+),(-?[0-9]+)\],? "
    r"thread: \[(-?[0-9]+),(-?[0-9]+),(-?[0-9]+)\] Assertion "
    r"(`.*?[`'] failed)"
)
_PIECE = r"[`'] failed\.?"
_SUFFIXES = (".cu:", ".cuh:", ".py:", ".h:", ".hpp:", ".cpp:", ".cc:", ".hip:", ".inl:", ".inc:")
_GLUE = " ]|\t>"  # what a progress bar or another writer ends with
_C10 = ("Device-side assertion tracking ", "Device-side assertions ")  # advice at the end of c10 texts
_AXES = ("bx", "by", "bz", "tx", "ty", "tz")
_MANY = 200  # asserts of one process that are told apart; a test of all bounds prints thousands
_MANY_TEXTS = 2000  # texts of one process that are read; a progress bar before an assert makes new ones
_CHECKERS = ("_assert_async",)  # kernels that look at values of others: messengers
_NO_NAME = frozenset({"unknown", "operator()", ""})
# Words of function or expression -> what the op does, as a person calls it (formats.md 3.2).
_FAMILIES: tuple[tuple[str, str], ...] = (
    ("srcSelectDimSize", "embedding / index_select"),
    ("indexSelect", "embedding / index_select"),
    ("embedding", "embedding"),
    ("gather", "gather / embedding"),
    ("scatter", "scatter / gather"),
    ("idx_dim", "scatter / gather"),
    ("n_classes", "loss over class indices"),
    ("nll_loss", "loss over class indices"),
    ("probability tensor", "sampling"),
    ("multinomial", "sampling"),
    ("index out of bounds", "indexing"),
    ("IndexKernel", "indexing"),
)


class _Group(msgspec.Struct):
    """Lines that say the same. ``low``, ``high``: smallest and largest block and thread; null = not told."""

    source: int
    process: str
    rank: int | None
    time_ns: int | None
    head: str
    tail: str
    lines: list[int]
    low: list[int | None]
    high: list[int | None]
    texts: int = 1


class _Assert(msgspec.Struct, frozen=True):
    """One assert of the program; another writer can leave something before the path."""

    path: str
    line: int
    function: str
    expression: str
    code: int = ASSERT
    on_host: bool = False

    @property
    def key(self) -> tuple[str, int, str, str]:
        """Equal for all lines of one assert."""
        name = self.path.replace("\\", "/").rpartition("/")[2]
        return name, self.line, self.function, self.expression


ReadGroup = Callable[[_Group], _Assert | None]
_FURTHER = ("", 0, "", "")
_Found = dict[tuple[str, tuple[str, int, str, str]], tuple[_Assert, _Group]]


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source: one record for each process and assert."""
    losses, reading = Losses(NAME), Reading()
    found: _Found = {}
    text = pl.col("text")
    for group in _groups(frame.filter(text.str.contains(CUDA, literal=True))):
        _take(group, _read_cuda, found, losses, reading)
    for group in _plain(frame.filter(text.str.contains(HIP, literal=True))):
        if not any(word in group.tail for word in _C10):
            _take(group, _read_hip, found, losses, reading)
    of_traps, others = _trapped(frame.filter(text.str.contains(TRAPPED, literal=True)))
    for group in _plain(of_traps):
        _take(group, _read_trap, found, losses, reading)
    reading.not_mine.extend(others["line"].unique())
    _mark_host_asserts(found, others["text"].to_list())
    reading.records = [_record(told, group) for told, group in found.values()]
    read_dsa(frame.filter(text.str.contains(FOUND, literal=True)), fetch, reading, losses)
    reading.records.sort(key=lambda record: record.line)
    reading.parsed = sorted(set(reading.parsed))
    reading.not_mine = sorted(set(reading.not_mine) - set(reading.parsed))
    reading.losses = losses.all()
    return reading


def _take(
    group: _Group,
    read_group: ReadGroup,
    found: _Found,
    losses: Losses,
    reading: Reading,
) -> None:
    try:
        told = read_group(group)
    except GrammarError as error:
        for line in group.lines:
            losses.add(group.source, line, group.head + group.tail, str(error))
        return
    if told is None:
        reading.not_mine.extend(group.lines)
        return
    reading.parsed.extend(group.lines)
    key = (group.process, told.key)
    if key not in found and (group.texts > 1 or _told(found, group.process) >= _MANY):
        key = (group.process, _FURTHER)
    if key not in found:
        found[key] = told, group
        return
    if key[1] == _FURTHER:
        told, group = found[key][0], msgspec.structs.replace(group, texts=group.texts + found[key][1].texts)
    seen, lines = found[key]
    found[key] = (told if len(told.path) < len(seen.path) else seen), _join(lines, group)


def _told(found: _Found, process: str) -> int:
    return sum(1 for key in found if key[0] == process) if len(found) >= _MANY else 0


def _groups(frame: pl.DataFrame) -> Iterator[_Group]:
    """Lines with equal text apart from block and thread; two asserts in one line count as two."""
    pieces = (
        frame.select("source", "process", "rank", "time_ns", "line", "text")
        .with_columns(
            pl.col("text").str.replace_all(_PIECE, "` failed\n").str.split("\n").alias("piece"),
        )
        .explode("piece")
        .filter(pl.col("piece").str.contains(CUDA, literal=True))
        .with_columns(pl.col("piece").str.extract_groups(_THREAD).alias("g"))
    )
    fields = [
        pl.col("g").struct[at + 1].cast(pl.Int64, strict=False).alias(name) for at, name in enumerate(_AXES)
    ]
    rows = pieces.with_columns(
        pl.coalesce(pl.col("g").struct[0], pl.col("piece")).alias("head"),
        pl.col("g").struct[7].fill_null("").alias("tail"),
        *fields,
    )
    yield from _folded(rows)


def _trapped(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows with one text each, from the path on; and the rows of others who say the same words."""
    mine = pl.col("text").str.contains(_CONDITION, literal=True)
    pieces = (
        frame.filter(mine)
        .with_columns(pl.col("text").str.split(TRAPPED).alias("piece"))
        .with_columns(
            pl.col("piece").list.first().alias("before"), pl.col("piece").list.slice(1).alias("piece")
        )
        .explode("piece")
        .filter(pl.col("piece").str.contains(_CONDITION, literal=True))
        .with_columns(pl.concat_str(pl.col("before"), pl.lit(TRAPPED), pl.col("piece")).alias("text"))
    )
    return pieces.drop("piece", "before"), frame.filter(~mine)


def _mark_host_asserts(found: _Found, others: Sequence[str]) -> None:
    """Old versions of DeepGEMM print the same on the host, and throw the condition behind it."""
    for key, (told, group) in found.items():
        thrown = f"{TRAPPED}{told.expression}"
        if told.code == TRAP and any(text.rstrip().endswith(thrown) for text in others):
            found[key] = msgspec.structs.replace(told, on_host=True), group


def _plain(frame: pl.DataFrame) -> Iterator[_Group]:
    """HIP prints neither block nor thread: equal lines."""
    rows = frame.with_columns(
        pl.lit("").alias("head"),
        pl.col("text").alias("tail"),
        *(pl.lit(None, dtype=pl.Int64).alias(name) for name in _AXES),
    )
    yield from _folded(rows)


def _folded(rows: pl.DataFrame) -> Iterator[_Group]:
    grouped = rows.group_by("source", "process", "head", "tail", maintain_order=True).agg(
        pl.col("rank", "time_ns").first(),
        pl.col("line").alias("lines"),
        pl.concat_list(pl.col(name).min() for name in _AXES).alias("low"),
        pl.concat_list(pl.col(name).max() for name in _AXES).alias("high"),
    )
    grouped = grouped.with_columns(pl.lit(1).alias("texts"))
    order = pl.int_range(pl.len()).over("source", "process")
    for part in (grouped.filter(order < _MANY_TEXTS), _together(grouped.filter(order >= _MANY_TEXTS))):
        yield from _converted(part)


def _together(grouped: pl.DataFrame) -> pl.DataFrame:
    """All groups of a process as one, with the text of the first."""
    axes = range(len(_AXES) // 2 * 2)
    return grouped.group_by("source", "process", maintain_order=True).agg(
        pl.col("head", "tail", "rank", "time_ns").first(),
        pl.col("lines").explode().sort(),
        pl.concat_list(pl.col("low").list.get(at).min() for at in axes).alias("low"),
        pl.concat_list(pl.col("high").list.get(at).max() for at in axes).alias("high"),
        pl.len().alias("texts"),
    )


def _converted(grouped: pl.DataFrame) -> Iterator[_Group]:
    for row in grouped.iter_rows(named=True):
        yield msgspec.convert(row, _Group)


def _read_cuda(group: _Group) -> _Assert | None:
    """Place and expression; what another writer left before the path is cut off. Null = source code."""
    at = max((group.head.rfind(suffix) for suffix in _SUFFIXES), default=-1)
    first = max(group.head.rfind(char, 0, max(at, 0)) for char in _GLUE) + 1
    if _is_source(group.head[:first]) or is_code(group.head[: max(at, 0)]):
        return None
    place = _fields("place", group.head[first:])
    expression = _fields("failed", group.tail)["EXPRESSION"]
    function = place.get("FUNCTION", "")
    return _Assert(place["PATH"], need_integer(place["INT"]), function, expression)


def _read_hip(group: _Group) -> _Assert | None:
    if _is_source(group.tail):
        return None
    fields = _fields("hip", group.tail)
    return _Assert(fields["PATH"], need_integer(fields["INT"]), fields["FUNCTION"], fields["EXPRESSION"])


def _read_trap(group: _Group) -> _Assert | None:
    before, _, text = group.tail.partition(TRAPPED)
    if _is_source(before):
        return None
    fields = _fields("trapped", TRAPPED + text)
    on_host = fields["TRAP_PATH"].endswith(_HOST_FILES)
    return _Assert(
        fields["TRAP_PATH"], need_integer(fields["INT"]), "", fields["CONDITION"], code=TRAP, on_host=on_host
    )


def _is_source(before: str) -> bool:
    """Whether the line is a comment, or a statement that prints an assert: a file that somebody shows."""
    return _COMMENT.search(before) is not None or is_code(before)


def _fields(rule: str, text: str) -> dict[str, str]:
    from lark import Token

    fields: dict[str, str] = {}
    for token in parse("device_assert", text.strip(), rule).children:
        if isinstance(token, Token):
            fields.setdefault(token.type, token_text(token))
    return fields


def _join(one: _Group, other: _Group) -> _Group:
    """Two groups that differ only in what was glued before."""
    return msgspec.structs.replace(
        one,
        lines=sorted([*one.lines, *other.lines]),
        texts=max(one.texts, other.texts),
        low=[_least(pair) for pair in zip(one.low, other.low, strict=True)],
        high=[_most(pair) for pair in zip(one.high, other.high, strict=True)],
    )


def _least(pair: Iterable[int | None]) -> int | None:
    return min((number for number in pair if number is not None), default=None)


def _most(pair: Iterable[int | None]) -> int | None:
    return max((number for number in pair if number is not None), default=None)


def _record(told: _Assert, group: _Group) -> FaultRecord:
    """The record of all lines of one assert; the 710 that a host call reports afterwards is its cascade."""
    kernel = _kernel(told.function) if names_kernel(told.path, told.function) else None
    family = next((name for word, name in _FAMILIES if _mentions(told, word)), None)
    said = f" [{family}]" if family else ""
    said += f"; one of {group.texts} further asserts, not told apart" if group.texts > 1 else ""
    where = f"{told.path}:{told.line}: {told.function + ': ' if told.function else ''}"
    return FaultRecord(
        source=group.source,
        process=group.process,
        line=group.lines[0],
        last_line=group.lines[-1],
        block_first=group.lines[0],
        text=f"{where}Assertion `{told.expression}` failed{_who(group)}{said}",
        witness=NAME,
        kind="kernel_raised" if told.on_host else "device_assert",
        site="host" if told.on_host else "device",
        code=None if told.on_host else told.code,
        vendor="nvidia" if group.low[0] is not None or told.code == TRAP else "amd",
        rank=group.rank,
        time_ns=group.time_ns,
        count=len(group.lines),
        kernel=kernel,
        location=SourceFrame(file=told.path, line=told.line, function=told.function),
        state=KernelState(kernel=kernel) if kernel else None,
        label=family,
    )


def _mentions(told: _Assert, word: str) -> bool:
    return word in told.function or word in told.expression or word in told.path


def _kernel(function: str) -> str | None:
    """The function without its types; null = a lambda, a kernel that only checks, or not told."""
    if (
        any(word in function for word in _CHECKERS)
        or "lambda" in function
        or "operator()" in function
        or function in _NO_NAME
    ):
        return None
    name = function.replace("(anonymous namespace)::", "").split("(", 1)[0].split("<", 1)[0]
    return name.split(" ")[-1].rsplit("::", 1)[-1] or None


def _who(group: _Group) -> str:
    """`` (64 lines: block [0,0,0] to [1,0,0], thread ...)``; empty where the text does not tell."""
    if group.low[0] is None:
        return f" ({len(group.lines)} lines)" if len(group.lines) > 1 else ""
    low, high = (",".join(map(str, part)) for part in (group.low[:3], group.high[:3]))
    first, last = (",".join(map(str, part)) for part in (group.low[3:], group.high[3:]))
    if len(group.lines) == 1:
        return f" (block [{low}], thread [{first}])"
    return f" ({len(group.lines)} lines: block [{low}] to [{high}], thread [{first}] to [{last}])"


WITNESS = Witness(
    name=NAME,
    device_side=True,
    usually="torch",
    gates=(CUDA, HIP, FOUND, TRAPPED),
    bulk=True,
    read=read,
    grammar="device_assert.lark",
)

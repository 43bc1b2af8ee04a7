"""cuda-gdb at a GPU exception: kernel, grid and source line (observed.md 24, formats.md 3.19)."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import FaultRecord, KernelState, Line, Reading
from analyzer.numbers import integer, is_digits, need_integer
from analyzer.schema import SourceFrame
from analyzer.tables.codes import by_gdb_text
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses, Told, by_process, read_distinct

NAME = "cuda-gdb"
GATE = "CUDA Exception: "
FETCHED_FAULTS = 50  # of a process
_BEFORE_LINES = 8  # the line of the dump file and the focus stand just before
_AFTER_LINES = 80  # the kernel table has a row for each kernel on the device
_BEGINNINGS = {
    "focus": ("[Current focus set to CUDA kernel ", "[Switching focus to CUDA kernel "),
    "trigger": ("The exception was triggered at PC ",),
    "opening": ("Opening GPU coredump:",),
    "table": ("Kernel Parent Dev Grid ",),
}
Fields = dict[str, list[str]]


class _Seen(msgspec.Struct):
    """What the lines around an exception say, by rule; ``numbers``: the lines used."""

    fields: dict[str, Fields] = {}
    numbers: list[int] = []

    def take(self, line: Line, rule: str, fields: Fields) -> None:
        """Keep the first line of each rule."""
        self.fields.setdefault(rule, fields)
        self.numbers.append(line.number)

    def get(self, rule: str, token: str, at: int = 0) -> str | None:
        """Token ``at`` of its kind in the line of the rule."""
        found = self.fields.get(rule, {}).get(token, [])
        return found[at] if at < len(found) else None

    def number(self, token: str) -> int | None:
        """A number that focus and kernel table both give."""
        text = self.get("focus", token) or self.get("kernel_row", token)
        return integer(text)


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source: one record an exception; late repeats of a text are folded."""
    losses = Losses(NAME)
    reading = Reading()
    for told in by_process(read_distinct(frame, _read_exception, losses, key=_from_gate)):
        folded: dict[str, int] = {}
        for position, one in enumerate(told):
            reading.parsed.append(one.line.number)
            if position >= FETCHED_FAULTS and one.value in folded:
                record = reading.records[folded[one.value]]
                assert isinstance(record, FaultRecord)
                reading.records[folded[one.value]] = msgspec.structs.replace(
                    record, count=record.count + 1, last_line=max(record.last_line, one.line.number)
                )
                continue
            seen = _look_around(one.line, fetch) if position < FETCHED_FAULTS else _Seen()
            folded[one.value] = len(reading.records)
            reading.records.append(_record(one, seen))
            reading.continuation.extend(seen.numbers)
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses.extend(losses.all())
    return reading


def _from_gate(text: str) -> str:
    return text[max(0, text.find(GATE)) :].strip()


def _read_exception(text: str) -> str | None:
    return _fields("exception", text)["TEXT"][0].strip() if text.startswith(GATE.rstrip()) else None


def _fields(rule: str, text: str) -> Fields:
    """Tokens of a line by their kind."""
    from lark import Token

    fields: Fields = {}
    for token in parse("cuda_gdb", text, rule).children:
        if isinstance(token, Token):
            fields.setdefault(token.type, []).append(token_text(token))
    return fields


def _look_around(line: Line, fetch: Fetch) -> _Seen:
    """Focus before; trigger, frame, source line and kernel table after, up to the next exception."""
    seen = _Seen()
    for one in reversed(fetch.before(line.number, line.process, _BEFORE_LINES)):
        rule, fields = _read_line(one.text.strip())
        if rule in {"focus", "opening"}:
            seen.take(one, rule, fields)
        elif one.text.strip():
            break
    for one in fetch.after(line.number, line.process, _AFTER_LINES):
        rule, fields = _read_line(one.text.strip())
        next_one = rule == "focus" and "focus" in seen.fields
        if GATE in one.text or rule == "opening" or next_one:
            break
        if rule:
            seen.take(one, rule, fields)
    return seen


@lru_cache(maxsize=1024)
def _read_line(text: str) -> tuple[str, Fields]:
    """The rule that reads a line, and its tokens; an empty rule = a line of somebody else."""
    rule = _rule(text)
    try:
        return (rule, _fields(rule, text)) if rule else ("", {})
    except GrammarError:
        return "", {}


def _rule(text: str) -> str:
    """The only rule that can read a line, by its looks."""
    for rule, beginnings in _BEGINNINGS.items():
        if text.startswith(beginnings):
            return rule
    if "<<<(" in text:
        return "frame"
    if is_digits(text.partition("\t")[0]):
        return "source"
    return "kernel_row" if is_digits(text.lstrip("* ")[:1]) and text.endswith(")") else ""


def _record(one: Told[str], seen: _Seen) -> FaultRecord:
    line = one.line
    kernel = seen.get("frame", "KERNEL") or seen.get("trigger", "SYMBOL")
    device = seen.number("DEVICE_NUMBER")
    state = _state(one.value, kernel, seen) if kernel else None
    return FaultRecord(
        source=line.source,
        process=line.process,
        line=line.number,
        last_line=max([line.number, *seen.numbers]),
        block_first=min([line.number, *seen.numbers]),
        text=GATE + one.value,
        witness=NAME,
        kind=by_gdb_text(one.value) or "launch_failure",
        site="device",
        vendor="nvidia",
        device=None if device is None else f"gpu:{device}",
        rank=line.rank,
        time_ns=line.time_ns,
        kernel=kernel,
        location=state.frame if state else None,
        state=state,
    )


def _state(exception: str, kernel: str, seen: _Seen) -> KernelState:
    launch = "frame" if seen.get("frame", "DIM") else "kernel_row"
    return KernelState(
        kernel=kernel,
        exception=exception,
        pc=seen.get("trigger", "HEX") or seen.get("frame", "HEX"),
        grid_id=seen.number("GRID"),
        grid=_dim(seen.get(launch, "DIM", 0)),
        block=_dim(seen.get(launch, "DIM", 1)),
        device=seen.number("DEVICE_NUMBER"),
        frame=_frame(kernel, seen),
    )


def _frame(kernel: str, seen: _Seen) -> SourceFrame | None:
    """The source line of the exception.

    The warp stops some instructions later: the frame's line can be one too far, the line of the trigger
    is right. Only the frame gives the whole path.
    """
    stopped, exact = seen.get("frame", "PLACE"), seen.get("trigger", "PLACE")
    if stopped is None and exact is None:
        return None
    path, _, number = (exact or stopped or "").rpartition(":")
    frame_path, _, frame_number = (stopped or "").rpartition(":")
    if frame_path.endswith("/" + path):
        path = frame_path
    text = seen.get("source", "SOURCE") if frame_number == number else None
    return SourceFrame(file=path, line=need_integer(number), function=kernel, text=text)


def _dim(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    x, y, z = text.strip("()").split(",")
    return need_integer(x.strip()), need_integer(y.strip()), need_integer(z.strip())


WITNESS = Witness(
    name=NAME,
    program="cuda-gdb",
    vendor="nvidia",
    device_side=True,
    tool=True,
    gates=(GATE,),
    read=read,
    grammar="cuda_gdb.lark",
)

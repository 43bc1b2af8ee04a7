"""The report of a PyTorch built with ``TORCH_USE_CUDA_DSA`` (formats.md 3.3). No witness by itself.

It names the kernel, the assertion, and the C++ line that launched it: exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.model import FaultRecord, KernelState, Line, Reading
from analyzer.numbers import natural, need_integer
from analyzer.schema import SourceFrame
from analyzer.witness import Fetch
from analyzer.witnesses.distinct import Losses, by_process, read_distinct

NAME = "device_assert"
FOUND = "device-side assertion failure"
_NUMBER, _LOOKING = " CUDA device-side assertion failure", "Looking for device-side assertion failure"
_LINES = 200  # ten failures at most are kept, each with about fifteen lines
_FAILURE = "Assertion failure "
_MAX_FOREIGN = 8
_MESSAGE, _PLACE = "GPU assertion failure message", "File containing assertion"
_PAIR = "  /  "  # formats.md 3.3 shows two fields on one line


class _Found(msgspec.Struct, frozen=True):
    """The head: how many failures on which device; null = the line before it."""

    device: int | None
    failures: int = 0


def read_dsa(frame: pl.DataFrame, fetch: Fetch, reading: Reading, losses: Losses) -> None:
    """Add the reports of one source to ``reading``."""
    for told in by_process(read_distinct(frame, _read_head, losses)):
        for one in told:
            reading.parsed.append(one.line.number)
            if one.value.device is not None:
                _report(one.line, one.value, fetch, reading)


def _read_head(line: str) -> _Found | None:
    if (at := line.find(_LOOKING)) >= 0:
        parse("device_assert", line[at:], "looking")
        return _Found(None)
    at = line.find(_NUMBER)
    if at < 0:
        return None
    first = line.rfind(" ", 0, at) + 1
    tokens = _tokens("found", line[first:])
    return _Found(need_integer(tokens[1]), need_integer(tokens[0]))


def _report(head: Line, found: _Found, fetch: Fetch, reading: Reading) -> None:
    """One record for each kernel and assertion of the report."""
    after = fetch.after(head.number, head.process, _LINES)
    records: dict[tuple[str, str, str], FaultRecord] = {}
    for lines, fields in _failures(after):
        reading.continuation.extend(line.number for line in lines)
        record = _record(head, lines, fields, found)
        key = (fields.get(_MESSAGE, ""), fields.get(_PLACE, ""), record.kernel or "")
        seen = records.get(key)
        records[key] = (
            msgspec.structs.replace(seen, count=seen.count + 1, last_line=record.last_line)
            if seen
            else record
        )
    reading.records.extend(records.values())


def _failures(after: Sequence[Line]) -> Iterator[tuple[list[Line], dict[str, str]]]:
    """Lines and fields of each failure."""
    lines: list[Line] = []
    fields: dict[str, str] = {}
    skipped = 0
    for line in after:
        text = line.text.strip()
        if text.startswith(_FAILURE) or skipped > _MAX_FOREIGN:
            if fields:
                yield lines, fields
            if skipped > _MAX_FOREIGN:
                return
            lines, fields, skipped = [line], {}, 0
        elif lines and (told := _read_fields(text)):
            fields |= told
            lines.append(line)
            skipped = 0
        else:
            skipped += 1
    if fields:
        yield lines, fields


def _read_fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(_PAIR):
        if " = " not in part:
            continue
        try:
            key, value = _tokens("field", part)
        except GrammarError:
            continue
        fields[key] = value
    return fields


def _tokens(rule: str, text: str) -> list[str]:
    children = parse("device_assert", text.strip(), rule).children
    return [token_text(token) for token in children if isinstance(token, str)]


def _record(head: Line, lines: Sequence[Line], fields: dict[str, str], found: _Found) -> FaultRecord:
    kernel = fields.get("Name of kernel launched that led to failure")
    message = fields.get(_MESSAGE, "")
    place = fields.get(_PLACE, "")
    path, _, number = place.rpartition(":")
    line = natural(number)
    launch = fields.get("File containing kernel launch")
    block = fields.get("Block ID that failed assertion")
    thread = fields.get("Thread ID that failed assertion")
    who = f" (first: block {block}, thread {thread})" if block and thread else ""
    return FaultRecord(
        source=head.source,
        process=head.process,
        line=lines[0].number,
        last_line=lines[-1].number,
        block_first=head.number,
        text=f"{place}: Assertion `{message}` failed{who}{f', launched at {launch}' if launch else ''}",
        witness=NAME,
        kind="device_assert",
        site="device",
        code=710,
        vendor="nvidia",
        device=f"gpu:{found.device}",
        rank=head.rank,
        time_ns=head.time_ns,
        kernel=kernel,
        location=SourceFrame(file=path, line=line, function="") if line is not None else None,
        state=KernelState(kernel=kernel) if kernel else None,
    )

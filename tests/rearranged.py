"""A log as it could have been written as well: with innocent lines, other numbers, another interleaving."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from random import Random

import polars as pl

from analyzer.ingest.envelope import strip
from analyzer.schema import Fault

Lines = Sequence[str]
Rename = Callable[[str], str]

INNOCENT = (
    'INFO:     10.0.0.7:51842 - "GET /health HTTP/1.1" 200 OK',
    'INFO:     10.0.0.7:51842 - "GET /metrics HTTP/1.1" 200 OK',
    "INFO: weights are on the device",
    'server_requests_running{model="m"} 0.0',
)
HEADER = "Traceback (most recent call last)"
MORE_PID = 700  # the small pid of a container stays one
_SCHEMA = {"source": pl.UInt16, "line": pl.UInt32, "raw": pl.String}
_CLOCK = re.compile(r"(?<![\d.:])([01]\d|2[0-3])(?=:[0-5]\d:[0-5]\d)")
_DATED = re.compile(r"(?<=\d[T_ ])([01]\d|2[0-3])(?=:[0-5]\d:[0-5]\d)")
_BOOT = re.compile(r"^\[ *(\d+)(?=\.\d{6}\])")
_EPOCH = re.compile(r"(?<![\w.])1[67]\d{8}(?=\d{0,9}(?![\w]))")
_PID = re.compile(r"(?i)\bpid(?:\(s\))?[=: ]+'?(\d{3,})\b")
_RANK = re.compile(r"(?i)(\b(?:local_|global_)?rank(?: *[:=#] *| )?|\[default)(\d{1,2})(?![\d.])")


def told(lines: Lines) -> pl.DataFrame:
    """What the envelope of each line says, a row a line."""
    frame = pl.DataFrame(
        {"source": 0, "line": range(len(lines)), "raw": list(lines)}, schema_overrides=_SCHEMA
    )
    return strip(frame).unique("line", keep="first", maintain_order=True)


def with_innocent(lines: Lines, faults: Sequence[Fault], random: Random) -> list[str]:
    """Some lines that nobody fails in, before the first fault and between whole records.

    Each has the envelope of the line that follows, as the same writer would have put it.
    """
    first = min((fault.line for fault in faults), default=len(lines) + 1)
    header = next((n for n, line in enumerate(lines) if HEADER in line), len(lines))
    rows = told(lines).select("line", "text").rows()
    usual = [n for n, text in rows[: min(first - 1, header) + 1] if starts(lines[n], text)]
    shown = list(lines)
    for place in sorted(random.sample(usual, min(3, len(usual))), reverse=True):
        prefix = lines[place].removesuffix(rows[place][1])
        shown.insert(place, prefix + random.choice(INNOCENT))
    return shown


def starts(raw: str, text: str) -> bool:
    """Whether a line begins a record: not indented, not the end of an op's body, no JSON around it."""
    return raw.endswith(text) and text[:1].isalnum() and not text.startswith(("Fusion", "Source", "Note"))


def renaming(texts: Sequence[str]) -> Rename:
    """Other times, pids and ranks, the same ones in all inputs of a case."""
    whole = "\n".join(texts)
    hours = [int(found[1]) for found in (*_CLOCK.finditer(whole), *_DATED.finditer(whole))]
    more = 0 if not hours else 1 if max(hours) < 23 else -1 if min(hours) > 0 else 0
    pids = {found[1] for found in _PID.finditer(whole)}
    pid = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(pids))})(?![\w.])") if pids else None
    ranks = [int(found[2]) for found in _RANK.finditer(whole)]
    most = max(ranks, default=0)

    def rename(line: str) -> str:
        line = _RANK.sub(lambda found: f"{found[1]}{most - int(found[2])}", line)
        if pid is not None:
            line = pid.sub(lambda found: str(int(found[0]) + MORE_PID), line)
        line = _EPOCH.sub(lambda found: str(int(found[0]) + 3600 * more), line)
        line = _BOOT.sub(lambda found: f"[{int(found[1]) + 3600 * more}", line)
        pattern = _CLOCK if _CLOCK.search(line) else _DATED
        return pattern.sub(lambda found: f"{int(found[1]) + more:02d}", line)

    return rename


def gathered(lines: Lines, faults: Sequence[Fault]) -> list[str]:
    """The lines of each fault as a block: what others printed between them stands behind."""
    order = list(range(len(lines)))
    process = told(lines)["process"].to_list()
    for fault in faults:
        place = {line: at for at, line in enumerate(order)}
        first, last = place[fault.line - 1], place[min(fault.last_line, len(lines)) - 1]
        inside = order[first : last + 1]
        own = [line for line in inside if process[line] == process[fault.line - 1]]
        order[first : last + 1] = [*own, *(line for line in inside if line not in set(own))]
    return [lines[line] for line in order]


def riffled(lines: Lines) -> list[str]:
    """Two blocks of tagged processes that follow one another, line by line by turns after the first line."""
    process = told(lines)["process"].to_list()
    shown: list[str] = []
    runs: list[list[int]] = []
    for line, key in enumerate(process):
        if runs and process[runs[-1][-1]] == key:
            runs[-1].append(line)
        else:
            runs.append([line])
    while runs:
        one = runs.pop(0)
        if runs and process[one[0]] and process[runs[0][0]]:
            other = runs.pop(0)
            pairs = zip_longest(one[1:], other)
            one = [one[0], *(line for pair in pairs for line in pair if line is not None)]
        shown.extend(lines[line] for line in one)
    return shown

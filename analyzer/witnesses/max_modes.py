"""What MAX says about its switches: NaN check, steps, refused options; and switches that were set."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from analyzer.grammar import parse, token_text
from analyzer.model import STEP_MARKS, Advice, FaultRecord, Line, ModeRecord, Reading
from analyzer.numbers import need_integer
from analyzer.parse.source_stack import innermost_user, traceback_before
from analyzer.parse.switch_setting import Setting, parse_settings
from analyzer.schema import NanCoverage
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.distinct import Losses, Told, by_process, read_distinct

NAME = "max_modes"
# A step begins with PLAN; the numbers in the plan's indented lines are of no use (observed.md 6).
NAN_CHECK, PLAN, POISON = "NanCheckPass: ", "mgp.buffer.plan stats:", "DEBUG_ALLOC_POISON"
LOG_LEVEL, OPTION = "Invalid log level (", "; ignoring"
_OPTION_HEAD = "unknown option "
_BEFORE_LINES = 400
_SWITCHES = (
    "MODULAR_DE",  # MODULAR_DEBUG, MODULAR_DEVICE_CONTEXT_SYNC_MODE
    "LAUNCH_BLOCKING=",  # CUDA_ and HIP_
)


class _NanCheck(msgspec.Struct):
    graph: str
    checked: int
    of: int
    stride: int


class _LogLevel(msgspec.Struct):
    """A refused level and those that are allowed."""

    text: str
    level: str
    allowed: tuple[str, ...]


class _Option(msgspec.Struct):
    text: str
    name: str


class _Noise(msgspec.Struct):
    """Understood, and of no use to the analysis (observed.md 19)."""


class _Mention(msgspec.Struct):
    """A sentence that names a switch: advice that another reader takes, or a switch of no use to us."""


_Said = _Mention | _NanCheck | _LogLevel | _Option | _Noise | tuple[Setting, ...]


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source. A mode is recorded where it first shows."""
    losses = Losses(NAME)
    reader = _Reader(fetch)
    is_plan = pl.col("text").str.contains(PLAN, literal=True)
    plans = frame.filter(is_plan)
    told: list[Told[_Said]] = read_distinct(frame.filter(~is_plan), _read_text, losses)
    for lines in by_process(told):
        reader.process(lines)
    reading = reader.reading
    reading.step_marks = plans.select(*STEP_MARKS)
    reading.parsed.extend(plans["line"].to_list())
    reading.records.extend(reader.modes.values())
    reading.records.sort(key=lambda record: record.line)
    reading.parsed = sorted(set(reading.parsed))
    reading.continuation = sorted(set(reading.continuation) - set(reading.parsed))
    reading.losses = losses.all()
    return reading


def _read_text(line: str) -> _Said | None:
    """What a line says; null = another program's text with one of our words in it."""
    if NAN_CHECK in line:
        checked, of, stride, graph = _tokens("nan_check", line[line.index(NAN_CHECK) :])
        return _NanCheck(
            graph=graph.removeprefix("@"),
            checked=need_integer(checked),
            of=need_integer(of),
            stride=need_integer(stride),
        )
    if LOG_LEVEL in line and "Please use one of" in line:
        text = line[line.index(LOG_LEVEL) :].rstrip()
        tokens = _tokens("log_level", text)
        allowed = tuple(token[1:-1] for token in tokens if token[0] in "\"'")
        return _LogLevel(text=text, level="" if len(allowed) == len(tokens) else tokens[0], allowed=allowed)
    if OPTION in line and _OPTION_HEAD in line:
        text = line[line.index(_OPTION_HEAD) :].rstrip()
        return _Option(text=text, name=_tokens("ignored_option", text)[0][1:-1])
    if POISON in line:
        _tokens("poison", line[line.index(POISON) :])
        return _Noise()
    if any(literal in line for literal in _SWITCHES):
        return parse_settings(line) or _Mention()
    return None


def _tokens(rule: str, text: str) -> list[str]:
    return [token_text(token) for token in parse("max_modes", text, rule).children if isinstance(token, str)]


class _Reader:
    """Turns what lines say into records."""

    def __init__(self, fetch: Fetch) -> None:
        self.fetch = fetch
        self.reading = Reading()
        self.modes: dict[tuple[str, object], ModeRecord] = {}

    def process(self, told: Sequence[Told[_Said]]) -> None:
        """The lines of one process, in order."""
        refused: dict[str, int] = {}
        for one in told:
            said, line = one.value, one.line
            if isinstance(said, _Mention):
                self.reading.not_mine.append(line.number)
                continue
            self.reading.parsed.append(line.number)
            if isinstance(said, _LogLevel):
                self._refused(one, said, refused)
            elif isinstance(said, _Option):
                advice = Advice(source=line.source, line=line.number, text=said.text)
                self.reading.records.append(advice)
            elif isinstance(said, _NanCheck):
                coverage = NanCoverage(
                    graph=said.graph, checked=said.checked, of=said.of, stride=said.stride, line=line.number
                )
                self._mode(line, "nan_check", coverage, key=said.graph)
            elif not isinstance(said, _Noise):
                for setting in said:
                    self._mode(line, setting.name, setting.value)

    def _mode(self, line: Line, name: str, value: bool | str | NanCoverage, key: object = None) -> None:
        record = ModeRecord(source=line.source, line=line.number, name=name, value=value)
        self.modes.setdefault((name, key or value), record)

    def _refused(self, one: Told[_Said], said: _LogLevel, seen: dict[str, int]) -> None:
        """A refused log level stops the program; the right spelling is in the text (observed.md 1)."""
        records = self.reading.records
        if said.text in seen:
            record = records[seen[said.text]]
            assert isinstance(record, FaultRecord)
            records[seen[said.text]] = msgspec.structs.replace(
                record, count=record.count + 1, last_line=one.line.number
            )
            return
        seen[said.text] = len(records)
        records.append(self._fault(one, said))
        if (level := said.level.upper()) in said.allowed:
            command = f"MODULAR_DEBUG=op-log-level={level}"
            text = f"the log level must be written {level}"
            records.append(Advice(source=one.line.source, line=one.line.number, text=text, command=command))

    def _fault(self, one: Told[_Said], said: _LogLevel) -> FaultRecord:
        line = one.line
        before = [
            (b.number, t)
            for b in self.fetch.before(line.number, line.process, _BEFORE_LINES)
            for t in b.text.split("\n")
        ]
        before += [(line.number, text) for text in one.above]
        trace = traceback_before([text for _, text in before])
        numbers = [before[n][0] for n in trace.lines] if trace else []
        self.reading.continuation.extend(numbers)
        return FaultRecord(
            source=line.source,
            process=line.process,
            line=line.number,
            last_line=line.number,
            block_first=numbers[0] if numbers else line.number,
            text=said.text,
            witness=NAME,
            kind="configuration",
            site="host",
            rank=line.rank,
            time_ns=line.time_ns,
            python=innermost_user(trace.frames) if trace else None,
        )


WITNESS = Witness(
    name=NAME,
    program="max",
    gates=(NAN_CHECK, PLAN, POISON, LOG_LEVEL, OPTION, *_SWITCHES),
    read=read,
    bulk=True,
    grammar="max_modes.lark",
)

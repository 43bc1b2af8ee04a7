"""Whether a message of the kernel driver and the error of a program are of one event (formats.md 3.20, 5.7).

A host has several GPUs and many processes, and its kernel log holds days. A message is joined with an error
only by something that both sides tell; that they stand in one input is no link. No text that is read here
says how many GPUs a host has, so a log with messages of one GPU does not show that there is only one.

What is certain: the same pid, the same PCI address, an error of the program that is itself of hardware. A
close time is not. It makes hardware the likely cause only if all of these hold (``Links.explains``):

- No pid differs. One that does is of another process, unless pids cannot be compared (a container counts
  its own) and the kernel's name of the process is that of the program's tag.
- The error says nothing of its own. A 719 is what a program sees whose GPU fails; an illegal address, a bad
  instruction or an assert accuses code, and a host with eight GPUs has messages of the other seven.
- The two are a minute apart at most on clocks that need no guess of a zone. Modulo whole hours one message
  in thirty is so close by chance.

Else it is a hint for a person, with the command that compares pid and GPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from analyzer.model import FaultRecord
from analyzer.numbers import natural
from analyzer.schema import Value
from analyzer.tables.kinds import HARDWARE, OF_CODE, PEERS
from analyzer.tables.xids import bus_of

_SECOND_NS = 1_000_000_000
_YEAR_S = 365 * 86_400.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAME_EVENT_S = 600  # a watchdog reports ten minutes after the fault
_LATER_S = 60  # firmware that does not answer is told after its timeout of some 45 s
_ZONES_S = 14 * 3600 + _SAME_EVENT_S  # the largest difference between two zones
_CLOSE_S = 60  # where whole hours or the pids differ, what is left has to be short to be a link
_HOST_PIDS = 10_000  # a container counts its pids from 1 and seldom comes so far
_NO_DEVICE, _NVLINK = 100, 220
# Names of interpreters: any program can have them.
_ANY_PROGRAM = re.compile(r"python[0-9.]*$|pt_|process$|bash$|sh$|rank[0-9]*$")
_NAME_LENGTH = 4  # a shorter word says nothing
_FABRIC = frozenset({"SXid", *(f"Xid {number}" for number in (74, *range(144, 151)))})
_OF_ONE_PROGRAM = "Xid 94"  # contained: only the program that it names was hit
_BUS = re.compile(r"(?:[0-9a-f]{4,8}:)?([0-9a-f]{2}:[0-9a-f]{2})\.[0-9a-f]\b", re.IGNORECASE)
Moment = tuple[int, str]


class Link(Value):
    """``linked`` null = nothing in the texts tells. ``why``: in words, to stand in a reason.

    ``near``: the time is close. ``by_time``: nothing else links them.
    """

    linked: bool | None
    why: str
    near: bool = False
    by_time: bool = False


class Links:
    """The links of the messages of a kernel log with one error of a program."""

    def __init__(self, records: Sequence[FaultRecord], root: FaultRecord) -> None:
        self._root = root
        self._pids = {pid for pid in (pid_of(root.process), root.pid) if pid is not None}
        self._moments = _moments(records, root)
        self._own_moments: list[tuple[int, Moment]] = []
        logged = [record for record in records if record.site == "driver_log"]
        own = [one for one in logged if pid_of(one.process) in self._pids and not self.is_apart(one)]
        self._own_moments = [
            (one.source, (one.time_ns, one.clock))
            for one in own
            if one.time_ns is not None and one.clock is not None
        ]
        self._same_pids = bool(own)
        named = {bus.lower() for bus in _BUS.findall(root.text)}
        self._buses = named or {bus_of(one.device) for one in own if one.device and not _is_of_fabric(one)}

    def of(self, record: FaultRecord) -> Link:
        """Whether one message belongs to the error.

        What speaks against it counts first: another vendor, time or GPU, another pid where pids can be
        compared. Then each of these is a link: the same pid; the GPU that the error names, or that a message
        with its pid names; an error of the program that is itself of hardware; a time close to it, if no
        pid differs.
        """
        if None not in {record.vendor, self._root.vendor} and record.vendor != self._root.vendor:
            return Link(linked=False, why="it is of another vendor's driver")
        if self.is_apart(record):
            return Link(linked=False, why="the kernel log has it at another time")
        pid = pid_of(record.process)
        if pid is not None and pid in self._pids:
            return Link(linked=True, why="by the same pid")
        if record.device and self._buses and not _is_of_fabric(record):
            if bus_of(record.device) not in self._buses:
                return Link(linked=False, why=f"it is of another GPU ({record.device})")
            if _is_of_the_gpu(record, pid):
                return Link(linked=True, why=f"on the same GPU ({record.device})")
        if pid is not None and self._are_comparable():
            other = f"the kernel log names pid {pid}, not {min(self._pids)} (inside a container pids differ)"
            return Link(linked=False, why=other)
        if _is_alike(record, self._root):
            return Link(linked=True, why="the program's own error is of hardware too")
        return self._by_time(record, pid)

    def explains(self, record: FaultRecord) -> bool:
        """Whether a message of failed hardware is the cause: by a link that is certain, or see the module."""
        link = self.of(record)
        if not link.linked or not link.by_time:
            return bool(link.linked)
        waits = (
            self._root.kind in PEERS
        )  # for whom is not told: a GPU of any other process can fail meanwhile
        return not waits and not says_what_code_did(self._root) and self.is_at_once(record)

    def has_pids(self) -> bool:
        """Whether the error tells its pid."""
        return bool(self._pids)

    def is_long_after(self, record: FaultRecord) -> bool:
        """A message that came when the program had failed already; two inputs can be of two zones."""
        passed, source = self._passed(record)
        return passed is not None and record.source == source and passed < -_LATER_S

    def _by_time(self, record: FaultRecord, pid: int | None) -> Link:
        differs = pid is not None and bool(self._pids)
        if not differs or names_program(record.process, self._root.process):
            if self._is_near(record, _SAME_EVENT_S if not differs else _CLOSE_S):
                return Link(linked=True, why="at the same time", near=True, by_time=True)
            if not differs:
                return Link(linked=None, why="no pid, GPU or time links it with this error")
        near = self._is_near(record, _CLOSE_S)
        told = f"pid {pid} there and {min(self._pids)} here: another process, unless it ran in a container"
        return Link(linked=None, why=f"{told}, where pids differ", near=near)

    def _are_comparable(self) -> bool:
        """Whether another pid is another process: both count in the same namespace.

        They do if the kernel log has the program's pid too. Else a large pid is taken for the host's; what
        a container's runtime tagged, or a small one, can be any process of the host. The pid that a system
        log has is that of a service, whose children write under it.
        """
        process = self._root.process
        alone = "/" not in process and not process.endswith("]")
        return self._same_pids or bool(self._pids and min(self._pids) >= _HOST_PIDS and alone)

    def _passed(self, record: FaultRecord) -> tuple[float | None, int]:
        """Seconds from the message to the error, and the input of the clock that tells the latter.

        Null = their clocks cannot be compared. Messages with the error's pid tell its time as well: a kernel
        log counts from the start of the machine, which no program does.
        """
        told = [(self._root.source, moment) for moment in self._moments]
        found = self._compared(record, told) or self._compared(record, self._own_moments)
        return min(found, key=lambda one: abs(one[0])) if found else (None, self._root.source)

    @staticmethod
    def _compared(record: FaultRecord, told: Sequence[tuple[int, Moment]]) -> list[tuple[float, int]]:
        if record.time_ns is None or record.clock is None:
            return []
        at = (record.time_ns, record.clock)
        usable = [one for one in told if record.clock != "boot" or one[0] == record.source]
        passed = [(_seconds(at, moment), source) for source, moment in usable]
        return [(one, source) for one, source in passed if one is not None]

    def is_apart(self, record: FaultRecord) -> bool:
        """Whether a message is certainly of another time than the error.

        Two inputs can stand in different zones, and do not say so: whole hours between them are none.
        """
        passed, source = self._passed(record)
        if passed is None:
            return False
        apart = abs(passed)
        return (_rest(apart) if _can_shift(record, source, apart) else apart) > _SAME_EVENT_S

    def _is_near(self, record: FaultRecord, within_s: float) -> bool:
        """Close enough to be a hint: the error follows the message, or comes just before it."""
        passed, source = self._passed(record)
        if passed is None:
            return False
        shifted = _can_shift(record, source, abs(passed)) and _rest(abs(passed)) <= _CLOSE_S
        return -_LATER_S <= passed <= within_s or shifted

    def is_at_once(self, record: FaultRecord) -> bool:
        """Whether a message is of the same minute as the error, on clocks that can be compared."""
        passed, _ = self._passed(record)
        return passed is not None and abs(passed) <= _CLOSE_S


def pid_of(process: str) -> int | None:
    """The pid in a process key such as ``python3 pid=763`` or ``python3[763]``; null = it has none."""
    inside = process.rpartition("[")[2].removesuffix("]")
    if "pid=" not in process and process.endswith("]"):
        return natural(inside)
    number = process.rpartition("pid=")[2].partition(" ")[0].partition("/")[0]
    return natural(number) if "pid=" in process else None


def are_apart(first: FaultRecord, second: FaultRecord) -> bool:
    """Whether two messages of kernel logs are certainly of two events."""
    return Links([], second).is_apart(first)


def says_what_code_did(record: FaultRecord) -> bool:
    """Whether an error is of a kind that accuses code, and is no answer of a GPU that fails."""
    return record.kind in OF_CODE


def names_program(name: str, process: str) -> bool:
    """Whether the kernel's name of a process is that of a tag: ``VLLM::EngineCor`` and ``EngineCore_DP0``.

    The kernel cuts names to 15 characters; that of an interpreter names no program.
    """
    tag = _name_of(process.rpartition("/")[2])
    if _ANY_PROGRAM.match(tag):
        return False
    words = [word for word in _name_of(name).split("::") if not _ANY_PROGRAM.match(word)]
    return any(
        min(len(word), len(tag)) >= _NAME_LENGTH and (tag.startswith(word) or word.startswith(tag))
        for word in words
    )


def _name_of(process: str) -> str:
    return process.partition(" pid=")[0].partition("[")[0].strip().lower()


def _is_of_the_gpu(record: FaultRecord, pid: int | None) -> bool:
    """A message that reaches every program on its GPU."""
    return pid is None or (record.kind in HARDWARE and record.name != _OF_ONE_PROGRAM)


def _can_shift(record: FaultRecord, source: int, apart: float) -> bool:
    return record.source != source and apart <= _ZONES_S


def _moments(records: Sequence[FaultRecord], root: FaultRecord) -> list[Moment]:
    """When the error happened, as far as told: by itself, by a line above it, by messages around it.

    Messages of a kernel log before and behind the error, in one input and minutes apart, show that the input
    was written as it happened: the error is of the time between them.
    """
    own = ((root.time_ns, root.clock), (root.above_ns, root.above_clock))
    told = [(time_ns, clock) for time_ns, clock in own if time_ns is not None and clock is not None]
    logged = [one for one in records if one.site == "driver_log" and one.source == root.source]
    before = max((one for one in logged if one.line < root.line), key=lambda one: one.line, default=None)
    behind = min((one for one in logged if one.line > root.line), key=lambda one: one.line, default=None)
    if told or before is None or behind is None or before.clock != behind.clock:
        return told
    if before.time_ns is None or behind.time_ns is None or before.clock is None:
        return []
    close = 0 <= behind.time_ns - before.time_ns <= _SAME_EVENT_S * _SECOND_NS
    return [(before.time_ns, before.clock)] if close else []


def _seconds(first: Moment, second: Moment) -> float | None:
    """Seconds between two moments; null = one of them has no date and the other has."""
    clocks = {first[1], second[1]}
    if len(clocks) == 1:
        return (second[0] - first[0]) / _SECOND_NS
    if clocks != {"epoch", "no_year"}:
        return None
    passed = _of_year(second) - _of_year(first)
    return (passed + _YEAR_S / 2) % _YEAR_S - _YEAR_S / 2


def _of_year(moment: Moment) -> float:
    """Seconds since 1 January, in a year of 365 days."""
    seconds = moment[0] / _SECOND_NS
    if moment[1] != "epoch":
        return seconds
    day = _EPOCH + timedelta(seconds=seconds)
    is_leap_day = (day.month, day.day) == (2, 29)
    at = (day - timedelta(days=1) if is_leap_day else day).replace(year=1970)
    return (at - _EPOCH).total_seconds() + 86_400 * is_leap_day


def _rest(apart: float) -> float:
    return min(apart % 3600, 3600 - apart % 3600)


def _is_of_fabric(record: FaultRecord) -> bool:
    """NVLink and its switches are told by another GPU, or by none, than the one whose program fails."""
    name = record.name or ""
    return name in _FABRIC or name.partition(" ")[0] in _FABRIC


def _is_alike(record: FaultRecord, root: FaultRecord) -> bool:
    """The program says itself that hardware failed, and the message is of that kind."""
    lost = root.kind == "device_lost" or root.code in {_NO_DEVICE, _NVLINK}
    if record.kind == "device_lost":
        return lost
    return record.kind == "ecc_error" and root.kind == "ecc_error" and root.code != _NVLINK

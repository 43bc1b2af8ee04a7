"""A fault as its witness read it, and whether its place may be believed."""

from __future__ import annotations

from typing import Literal

from analyzer.model.ops import FusionNode
from analyzer.schema import FaultKind, SourceFrame, Trust, Value


class KernelState(Value):
    """A kernel that a device-side witness saw at the fault (core dump, cuda-gdb, sanitizer)."""

    kernel: str
    exception: str | None = None
    pc: str | None = None
    grid_id: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    device: int | None = None
    frame: SourceFrame | None = None


FaultSite = Literal["device", "launch", "launch_serialised", "sync", "host", "driver_log", "unknown"]


class KilledProcess(Value):
    """A process that was killed for memory. ``by_system``: the operating system's own log says so."""

    pid: int
    name: str
    by_system: bool = True

    @property
    def words(self) -> str:
        """``node (pid 4711)``."""
        return f"{self.name} (pid {self.pid})"


class StopRequest(Value):
    """Somebody asked the whole program to stop; ``signal`` null = told in other words."""

    signal: str | None = None


class PrintedValue(Value):
    """The fault is a value that was printed at its launch: no text tells it."""


class XidEvent(Value):
    """A message of NVIDIA's driver. ``caused_by``: the Xid before it that it names as its cause."""

    caused_by: int | None


Detail = XidEvent | KilledProcess | StopRequest | PrintedValue


class FaultRecord(Value):
    """A failure as its witness told it, before roles and trust are decided.

    ``site``: where the text came from. ``device`` = the device itself spoke (core dump, assert);
    ``launch`` = a launch call returned it; ``launch_serialised`` = a launch call in sync mode;
    ``sync`` = a copy or synchronisation met it; ``host`` = host code raised it; ``driver_log`` = the driver
    told the driver log, which names GPU and process but no kernel.
    ``line`` is the first line of the cause text, ``block_first`` the first line of the whole block.
    ``teardown``: printed while objects were destroyed, so never the first report of anything. ``met``: the
    printer only looks at the device (NCCL, a watchdog), so any other report of the process counts before it.
    ``relayed``: it says that something failed, not what (a server about its worker, a launcher about a rank),
    so it is the root only where nobody says what. ``announces``: it is the head of a traceback, whose end
    says what. ``first_observed``: a launcher saw this rank fail first.
    ``clock`` (kind of ``time_ns``, as in ``LINES``) and ``pid`` are filled in from the line if they are null.
    ``above_ns``, ``above_clock``: time of the nearest line above it, where its own line has none.
    ``detail``: what its witness read in the text beyond the fields that all faults have.
    """

    source: int
    process: str
    line: int
    last_line: int
    block_first: int
    text: str
    witness: str
    kind: FaultKind
    site: FaultSite
    code: int | None = None
    name: str | None = None
    vendor: str | None = None
    device: str | None = None
    rank: int | None = None
    time_ns: int | None = None
    count: int = 1
    entry_point: str | None = None
    kernel: str | None = None
    python: SourceFrame | None = None
    location: SourceFrame | None = None
    fusion: FusionNode | None = None
    stacks: tuple[tuple[SourceFrame, ...], ...] = ()
    state: KernelState | None = None
    label: str | None = None
    async_hint: bool | None = None
    advice: bool = False
    teardown: bool = False
    met: bool = False
    relayed: bool = False
    announces: bool = False
    first_observed: bool = False
    clock: str | None = None
    pid: int | None = None
    above_ns: int | None = None
    above_clock: str | None = None
    detail: Detail | None = None


class TrustDecision(Value):
    """Whether the place of a report may be believed, and why. ``rule``: who decided; empty = nobody yet."""

    trust: Trust
    reason: str
    lines: tuple[tuple[int, int], ...] = ()
    rule: str = ""

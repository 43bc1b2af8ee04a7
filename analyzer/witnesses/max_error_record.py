"""From the parts of one MAX error to its ``FaultRecord`` (observed.md 10-15, 17). No witness by itself."""

from __future__ import annotations

import msgspec

from analyzer.model import FaultRecord, FaultSite
from analyzer.parse.fusion_tree import tensors
from analyzer.parse.max_error_block import Block
from analyzer.parse.max_error_text import ErrorText
from analyzer.parse.source_stack import Traceback, innermost_user
from analyzer.parse.tensor_type import parse_type
from analyzer.schema import FaultKind
from analyzer.tables.codes import ErrorCode, by_name, by_text, vendor_of
from analyzer.witnesses.distinct import Told

_VENDORS = {"CUDA": "nvidia", "HIP": "amd"}


Event = Told[ErrorText]


class Found(msgspec.Struct):
    """One failure as it was put together.

    ``heads``: the lines that name entry point and kernel, none for a bare cause. ``cause``: a gated cause.
    ``body``: number and text of the lines after the heads that ``block`` was read from; both are empty for
    a late repeat. ``hints``: number and text of the advice that follows. ``trace``: what stands before.
    """

    heads: list[Event]
    cause: Event | None = None
    body: list[tuple[int, str]] = []
    block: Block = Block()
    hints: list[tuple[int, ErrorText]] = []
    trace: Traceback | None = None
    block_first: int = 0

    @property
    def first(self) -> Event:
        """The first gated line."""
        return self.heads[0] if self.heads else self.last

    @property
    def last(self) -> Event:
        """The last gated line without the advice."""
        return self.cause or self.heads[-1]

    @property
    def kernel(self) -> str | None:
        """The innermost kernel named: the entry point is not the op (observed.md 11)."""
        names = [head.value.name for head in self.heads if head.value.role == "kernel"]
        return self.block.kernel or (names[-1] if names else None)

    @property
    def entry_point(self) -> str | None:
        """The outer async region."""
        return next((head.value.name for head in self.heads if head.value.role == "entry"), None)

    @property
    def error(self) -> ErrorText | None:
        """The cause, if it has a known form; what the block says goes before what the gate found."""
        if self.block.cause:
            return self.block.cause[1]
        return self.cause.value if self.cause and not self.block.cause_lines else None

    @property
    def raised(self) -> str:
        """The cause as host code raised it; empty = there is none."""
        return "" if self.error else "\n".join(self.body[n][1].strip() for n in self.block.cause_lines)

    @property
    def text(self) -> str:
        """The cause as printed; without one, the line that names the kernel."""
        return self.error.text if self.error else self.raised or self.last.value.text


def build_record(found: Found, witness: str) -> FaultRecord:
    """The record of one failure.

    ``line`` is that of the cause; without a cause (truncated log) that of the last head.
    """
    error = found.error
    kind, site = _meaning(found)
    known = _known(error)
    cause_line = (
        found.body[found.block.cause_lines[0]][0] if found.block.cause_lines else found.last.line.number
    )
    used = [found.body[n][0] for n in found.block.lines] + [number for number, _ in found.hints]
    line = found.first.line
    return FaultRecord(
        source=line.source,
        process=line.process,
        line=cause_line,
        last_line=max([cause_line, *used]),
        block_first=found.block_first or found.first.line.number,
        text=found.text,
        witness=witness,
        kind=kind,
        site=site,
        code=known.code if known else None,
        name=error.name if error else None,
        vendor=_vendor(error),
        device=_device(found),
        rank=line.rank,
        time_ns=found.last.line.time_ns if found.last.line.time_ns is not None else line.time_ns,
        entry_point=found.entry_point,
        kernel=found.kernel,
        python=innermost_user(found.trace.frames) if found.trace else None,
        location=error.location if error else None,
        fusion=found.block.fusion,
        stacks=found.block.stacks,
        label=error.label if error else None,
        # A missing hint proves nothing: the flag, switched on too late, removes it (observed.md 20).
        async_hint=True if any(text.role == "hint" for _, text in found.hints) else None,
    )


def _known(error: ErrorText | None) -> ErrorCode | None:
    if error is None:
        return None
    return (by_name(error.name) if error.name else None) or by_text(error.description or "")


def _meaning(found: Found) -> tuple[FaultKind, FaultSite]:
    """What failed, and who met it."""
    error = found.error
    if error is None:
        # The fusion tree follows every cause (observed.md 10): without it the log was cut in the cause, and
        # half a line of a device error would read as an error of the op's own code.
        whole = found.block.fusion or found.block.fusion_error or found.block.sources_at is not None
        return ("kernel_raised", "host") if found.raised and whole else ("unknown", "unknown")
    if error.role == "nan":
        return "nan", "host"
    if error.role == "driver":
        return "configuration", "host"
    if error.role == "unhandled":
        return "host_abort", "host"
    known = _known(error)
    kind: FaultKind = known.kind if known else "unknown"
    if error.role == "serialised":
        return kind, "launch_serialised"
    if found.heads:
        return kind, "launch" if found.kernel else "unknown"
    # Bare: a call of the host's own met it. An error of that call itself (class A) is raised there.
    return kind, "host" if known and known.site == "A" else "sync"


def _vendor(error: ErrorText | None) -> str | None:
    if error is None or error.api is None:
        return None
    return vendor_of(error.name or "") or _VENDORS[error.api]


def _device(found: Found) -> str | None:
    """The device named, or the only one that the kernel's operands live on."""
    error = found.error
    if error and error.device:
        return error.device
    types = list(tensors(found.block.fusion)) if found.block.fusion else []
    if error and error.tensor_type and (checked := parse_type(error.tensor_type)):
        types = [checked]
    devices = {tensor.device for tensor in types if tensor.device and not tensor.device.startswith("cpu")}
    return devices.pop() if len(devices) == 1 else None

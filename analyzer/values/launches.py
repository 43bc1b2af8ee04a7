"""The launches that a value printer told, as the inference needs them: by process, with shapes and steps."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

import msgspec
import polars as pl

from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord, KernelLaunch, OpFacts, PrintedTensor
from analyzer.parse.printed_tensor import MAX_BODY, is_integer, read_tensor
from analyzer.schema import TensorInfo
from analyzer.timeline.facts import gather_facts
from analyzer.timeline.processes import owners_of
from analyzer.traits import is_sticky
from analyzer.values.flaws import is_buffer
from analyzer.values.prints import Prints

_VALUES_SHOWN = 64
_EXACT = 1_000_000  # the C++ wrapper prints integers from here on rounded to six digits: 1.67772e+07


class ProcessKernels(msgspec.Struct, frozen=True, kw_only=True):
    """Launches of one process with their prints. ``prints`` ends at the first fault of the device.

    After a device-side assert read-backs went on "successfully" with stale values (measured: PyTorch 2.11,
    every minimum and maximum was the last value read before), so nothing printed later is believed.
    """

    known: Knowledge
    source: int
    process: str
    launches: pl.DataFrame
    prints: pl.DataFrame
    limit: int | None

    def interleaved(self) -> bool:
        """Whether several writers without tags print here: a launch was begun before another one ended."""
        return self.launches["completion_line"].head(-1).null_count() > 0

    def pairs(self) -> Prints:
        """Values before and after each launch."""
        return Prints(self.prints, self.launches)

    def launch(self, number: int) -> KernelLaunch:
        """One launch with the tensors printed around it."""
        row = self.launches.filter(pl.col("id") == number).row(0, named=True)
        own = self.prints.filter((pl.col("id") == number) & pl.col("form").is_in(["tensor", "python"]))
        own = own.filter(pl.col("value").is_null())
        return KernelLaunch(
            source=self.source,
            process=self.process,
            id=number,
            kernel=row["kernel"],
            occurrence=row["occurrence"],
            level=row["level"],
            line=row["line"],
            completion_line=row["completion_line"],
            before=self._tensors(own.filter(pl.col("event") == "before")),
            after=self._tensors(own.filter(pl.col("event") == "after")),
        )

    def _tensors(self, prints: pl.DataFrame) -> tuple[PrintedTensor, ...]:
        return tuple(
            self._tensor(arg, line, end) for arg, line, end in prints.select("arg", "line", "end").iter_rows()
        )

    def _tensor(self, arg: str, line: int, end: int | None) -> PrintedTensor:
        last = end or line + MAX_BODY
        if self.limit is not None:
            last = min(last, self.limit - 1)
        lines = self.known.readers[self.source].lines(line + 1, last)
        body = [part for one in lines if one.process == self.process for part in one.text.split("\n")]
        return read_tensor(arg, line, body)


def processes(known: Knowledge) -> Iterable[tuple[int, str]]:
    """Source and process of each writer of launches."""
    return known.kernels.launches.select("source", "process").unique(maintain_order=True).iter_rows()


def kernels_of(known: Knowledge, source: int, process: str) -> ProcessKernels | None:
    """The launches of one process, or null if no printer told any."""
    own = (pl.col("source") == source) & (pl.col("process") == process)
    launches = known.kernels.launches.filter(own)
    if launches.is_empty():
        return None
    ops = known.timeline.ops.filter(own).select(pl.col("launch_line").alias("line"), pl.col("id"), "step")
    launches = launches.join(ops, on=["id", "line"], how="left", maintain_order="left")
    limit = first_fault_line(known, source, process)
    prints = known.kernels.prints.filter(own)
    if limit is not None:
        launches = launches.filter(pl.col("line") < limit)
        prints = prints.filter(pl.col("line") < limit).with_columns(
            [_before(limit, name) for name in ("min", "max", "end")]
        )
    return ProcessKernels(
        known=known, source=source, process=process, launches=launches, prints=prints, limit=limit
    )


def _before(limit: int, name: str) -> pl.Expr:
    """What was read back before a line; null else."""
    return pl.when(pl.col("end") < limit).then(name).alias(name)


def first_fault_line(known: Knowledge, source: int, process: str) -> int | None:
    """Line at which the device of a process was lost, as far as texts tell it."""
    lines = [
        record.line
        for record in known.records
        if record.source == source
        and record.process in (process, "")
        and is_sticky(record)
        and not record.met
    ]
    return min(lines, default=None)


def owner_of(fault: FaultRecord, ops: pl.DataFrame) -> tuple[int, str] | None:
    """Source and process of the ops that belong to a fault, if they are of one process."""
    owners = owners_of(ops)
    return owners[0] if len(owners) == 1 and owners[0][0] == fault.source else None


def with_tensors(facts: OpFacts, launch: KernelLaunch, prints: Prints) -> OpFacts:
    """An op with what was printed about its tensors."""
    tensors = tensor_infos(launch, prints)
    device = next((one.device for one in tensors if one.device), None)
    ref = msgspec.structs.replace(facts.ref, device=facts.ref.device or device)
    return msgspec.structs.replace(facts, ref=ref, tensors=tensors or facts.tensors)


def tensor_infos(launch: KernelLaunch, prints: Prints) -> tuple[TensorInfo, ...]:
    """Operands of a launch: inputs as they were before it, what it wrote as it was after it.

    Where nothing was read back after the launch, an argument that the kernel writes in other launches is an
    output, and a buffer about which nothing is known has the role "unknown": it can hold garbage.
    """
    after = list(launch.after)
    infos = []
    for given in launch.before:
        left = next((one for one in after if one.name == given.name), None)
        if left is not None:
            after.remove(left)
        read_back = left is not None and left.max is not None
        if left is not None and read_back and not _same(given, left):
            infos.append(_info(left, "output"))
            continue
        role = prints.role(launch.kernel, given.name)
        known = read_back or role is not None or not is_buffer(given.name)
        infos.append(_info(given, "output" if role == "written" else "input" if known else "unknown"))
    return (*infos, *(_info(one, "output") for one in after))


def _same(given: PrintedTensor, left: PrintedTensor) -> bool:
    return str((given.min, given.max, given.mean)) == str((left.min, left.max, left.mean))


def _info(tensor: PrintedTensor, role: str) -> TensorInfo:
    values = tensor.values if tensor.values is not None and len(tensor.values) <= _VALUES_SHOWN else None
    whole = is_integer(tensor.dtype)
    return TensorInfo(
        shape=list(tensor.shape or ()),
        dtype=tensor.dtype or "unknown",
        device=tensor.device,
        role=role,
        name=tensor.name,
        stride=list(tensor.stride) if tensor.stride is not None else None,
        elements=tensor.elements,
        min=_number(tensor.min, whole=whole),
        max=_number(tensor.max, whole=whole),
        mean=_number(tensor.mean, whole=False),
        values=None
        if values is None
        else [number for one in values if (number := _number(one, whole=whole)) is not None],
    )


def _number(value: float | None, *, whole: bool) -> float | int | str | None:
    """A number as JSON can hold it: not finite ones as text, whole ones without a point."""
    if value is None:
        return None
    if not isfinite(value):
        return str(value)
    return int(value) if whole and abs(value) < _EXACT else value


def facts_of_launch(kernels: ProcessKernels, launch: int, ops: pl.DataFrame) -> OpFacts:
    """Facts of one launch with its tensors.

    A launch of a printer encloses no other: one that stands between the lines of another is another writer's.
    """
    ops = ops.with_columns(pl.lit(None, dtype=pl.UInt64).alias("parent"))
    inside, before = ops.filter(pl.col("id") == launch), ops.filter(pl.col("id") < launch)
    facts = gather_facts(inside, before, kernels.known.readers[kernels.source], kernels.known.types)[0]
    return with_tensors(facts, kernels.launch(launch), kernels.pairs())

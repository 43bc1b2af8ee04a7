"""What the log shows of the program that failed: framework, server, graphs, tools that ran already.

A step for the wrong framework costs the engineer a run and his trust, so each fact is taken from a record or
from the text of the report; what neither shows is not assumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from analyzer.model import FaultRecord
from analyzer.schema import Value
from analyzer.tables.programs import PROGRAMS, Framework, ProgramRow, is_known, program_row, signs_of
from analyzer.witness import witness_named

LINES_AROUND = 40  # of the report: libraries, servers and tools show themselves near it
_BLOCK_READ = 400  # lines of one report; a longer one only repeats itself
_WIDTH = 2000  # characters of a line: what is looked for stands in frames and messages, not in dumps

_GRAPH_SIGNS = ("CUDAGraph::replay", "super().replay(", "graph.replay(", "cudaGraphLaunch", "cuGraphLaunch")
_VENDOR_SIGNS = ("CUDA", "cuda", "NVIDIA", "nvidia", "NVRM", "HIP ", "hipError", "ROCm", "rocm", "amdgpu")
_DUMP_SIGN = "Starting GPU coredump generation"  # the driver's own words (formats.md 3.12)
# A path of plain characters: it stands in a command that a person copies into a shell.
_DUMP_FILE = re.compile(r"(?<![^\s\"'(),])[\w./@%+:=~-]+\.nvcudmp(?![^\s\"'(),.])")


class Surroundings(Value):
    """What stands in the log beside the root fault: all faults, the lines of its report, those around it."""

    records: tuple[FaultRecord, ...] = ()
    block: tuple[str, ...] = ()
    around: tuple[str, ...] = ()


class Program(Value):
    """What is known of the program.

    ``max`` and ``torch`` both false = it is neither, or the log does not show which. ``own``: the program is
    known, and a framework is not: it gets no settings of one. ``bare``: nothing is known of the program, and
    nothing shows whose devices it uses: it gets no tool of a vendor. ``server``: its row. ``graph``: the
    fault was met at the replay of a CUDA graph. ``dump``: a GPU core dump was begun,
    ``dump_file`` where the log names it.
    """

    max: bool = False
    torch: bool = False
    own: bool = False
    bare: bool = False
    server: ProgramRow | None = None
    graph: bool = False
    dump: bool = False
    dump_file: str | None = None


def surroundings_of(
    fault: FaultRecord, records: Sequence[FaultRecord], raw: Callable[[int, int], list[str]]
) -> Surroundings:
    """What stands around a fault.

    Args:
        fault: The root fault.
        records: All faults of all inputs.
        raw: Lines ``first`` to ``last`` of the input of the fault, fewer where it ends.
    """
    last = min(fault.last_line, fault.block_first + _BLOCK_READ)
    first = max(fault.block_first - LINES_AROUND, 1)
    return Surroundings(
        records=tuple(records),
        block=tuple(line[:_WIDTH] for line in raw(fault.block_first, last)),
        around=tuple(line[:_WIDTH] for line in raw(first, last + LINES_AROUND)),
    )


def program_of(fault: FaultRecord, beside: Surroundings, *, has_ops: bool) -> Program:
    """What the log shows of the program of the root fault."""
    frameworks = _frameworks(fault, beside, has_ops=has_ops)
    row = program_row(witness_named(fault.witness).program)
    file = next((found[0] for line in beside.around if (found := _DUMP_FILE.search(line))), None)
    return Program(
        max="max" in frameworks,
        torch="torch" in frameworks,
        own=not frameworks and row is not None and row.stands != "around",
        bare=row is not None and not is_known(row.name) and not _shows_vendor(fault, beside),
        server=_server(fault, beside),
        graph=_at_graph(fault, beside),
        dump=file is not None or _has(beside.around, (_DUMP_SIGN,)),
        dump_file=file.strip("\"'(),") if file else None,
    )


def _frameworks(fault: FaultRecord, beside: Surroundings, *, has_ops: bool) -> set[Framework]:
    """The nearest witness decides: who told the fault, its kernel, who else spoke, the text around it."""
    witness = witness_named(fault.witness)
    row = program_row(witness.program)
    if row is not None and row.framework is not None:
        return {row.framework}
    if (fault.kernel or "").startswith("mojo_"):
        return {"max"}
    if row is not None and row.stands == "alone":
        return set()
    if _is_python_kernel(fault):
        return {"torch"}
    rows = [program_row(witness_named(name).program) for name in _witnesses(fault, beside)]
    if found := {one.framework for one in rows if one and one.framework}:
        return found
    near = (fault.text, *beside.around)
    both: tuple[Framework, ...] = ("max", "torch")
    if by_text := {one for one in both if _has(near, signs_of(one))}:
        return by_text
    if has_ops:
        return {"max"}
    usual = program_row(witness.usually)
    return {usual.framework} if usual and usual.framework else set()


def _shows_vendor(fault: FaultRecord, beside: Surroundings) -> bool:
    told = fault.vendor or witness_named(fault.witness).vendor
    return told is not None or _has((fault.text, *beside.block, *beside.around), _VENDOR_SIGNS)


def _is_python_kernel(fault: FaultRecord) -> bool:
    """A kernel whose source is Python is Triton's."""
    frame = (fault.state.frame if fault.state else None) or fault.location
    return fault.site == "device" and frame is not None and frame.file.endswith(".py")


def _server(fault: FaultRecord, beside: Surroundings) -> ProgramRow | None:
    named = {witness_named(name).program for name in _witnesses(fault, beside)}
    servers = (row for row in PROGRAMS if row.server)
    return next((row for row in servers if row.name in named or _has(beside.around, row.signs)), None)


def _witnesses(fault: FaultRecord, beside: Surroundings) -> set[str]:
    """Who spoke in the input of the fault."""
    return {one.witness for one in beside.records if one.source == fault.source} | {fault.witness}


def _at_graph(fault: FaultRecord, beside: Surroundings) -> bool:
    own = (fault.python.text or "",) if fault.python else ()
    return _has((*own, *beside.block), _GRAPH_SIGNS)


def _has(lines: Iterable[str], words: Sequence[str]) -> bool:
    return any(word in line for line in lines for word in words)

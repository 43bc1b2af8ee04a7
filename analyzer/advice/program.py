"""What the log shows of the program that failed: framework, server, graphs, tools that ran already.

A step for the wrong framework costs the engineer a run and his trust, so each fact is taken from a record or
from the text of the report; what neither shows is not assumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from analyzer.model import FaultRecord
from analyzer.schema import Value

LINES_AROUND = 40  # of the report: libraries, servers and tools show themselves near it
_BLOCK_READ = 400  # lines of one report; a longer one only repeats itself
_WIDTH = 2000  # characters of a line: what is looked for stands in frames and messages, not in dumps

_MAX = frozenset({"max_errors", "max_modes", "max_serve", "mojo_assert"})
_SERVERS = ("vllm", "sglang", "tgi")
_TORCH = frozenset(
    {"c10", "triton", "inductor", "aoti_checks", "aoti_printer", "process_group_nccl", "gloo", "torchrun"}
) | frozenset(_SERVERS)
_OTHERS = frozenset({"ggml", "xla", "trtllm", "rocm"})  # programs that are neither, whatever stands beside
_MOSTLY_TORCH = frozenset({"device_assert", "cuda_libraries"})  # unless MAX speaks beside them
_MAX_SIGNS = (".mojo:", "mojo_pkg_", "max/serve/", "max/engine/", "[OP] LAUNCH", "MODULAR_DEBUG")
_TORCH_SIGNS = ("libtorch", "libc10", "torch::", "at::native", "/torch/", "aten::", "/vllm/", "/sglang/")
_SERVER_SIGNS = {"vllm": "/vllm/", "sglang": "/sglang/", "tgi": "/text_generation_server/"}
_GRAPH_SIGNS = ("CUDAGraph::replay", "super().replay(", "graph.replay(", "cudaGraphLaunch", "cuGraphLaunch")
_DUMP_SIGN = "Starting GPU coredump generation"  # the driver's own words (formats.md 3.12)
# A path of plain characters: it stands in a command that a person copies into a shell.
_DUMP_FILE = re.compile(r"(?<![^\s\"'(),])[\w./@%+:=~-]+\.nvcudmp(?![^\s\"'(),.])")


class Seen(Value):
    """What stands in the log beside the root fault: all faults, the lines of its report, those around it."""

    records: tuple[FaultRecord, ...] = ()
    block: tuple[str, ...] = ()
    around: tuple[str, ...] = ()


class Program(Value):
    """What is known of the program. ``max`` and ``torch`` both false = the log does not show which.

    ``server``: vllm, sglang or tgi. ``graph``: the fault was met at the replay of a CUDA graph. ``dump``: a
    GPU core dump was begun, ``dump_file`` where the log names it.
    """

    max: bool = False
    torch: bool = False
    server: str | None = None
    graph: bool = False
    dump: bool = False
    dump_file: str | None = None


def seen_around(
    fault: FaultRecord, records: Sequence[FaultRecord], raw: Callable[[int, int], list[str]]
) -> Seen:
    """What stands around a fault.

    Args:
        fault: The root fault.
        records: All faults of all inputs.
        raw: Lines ``first`` to ``last`` of the input of the fault, fewer where it ends.
    """
    last = min(fault.last_line, fault.block_first + _BLOCK_READ)
    first = max(fault.block_first - LINES_AROUND, 1)
    return Seen(
        records=tuple(records),
        block=tuple(line[:_WIDTH] for line in raw(fault.block_first, last)),
        around=tuple(line[:_WIDTH] for line in raw(first, last + LINES_AROUND)),
    )


def program_of(fault: FaultRecord, seen: Seen, *, has_ops: bool) -> Program:
    """What the log shows of the program of the root fault."""
    is_max, is_torch = _frameworks(fault, seen, has_ops=has_ops)
    file = next((found[0] for line in seen.around if (found := _DUMP_FILE.search(line))), None)
    return Program(
        max=is_max,
        torch=is_torch,
        server=_server(fault, seen),
        graph=_at_graph(fault, seen),
        dump=file is not None or _has(seen.around, (_DUMP_SIGN,)),
        dump_file=file.strip("\"'(),") if file else None,
    )


def _frameworks(fault: FaultRecord, seen: Seen, *, has_ops: bool) -> tuple[bool, bool]:
    """The nearest witness decides: who told the fault, its kernel, who else spoke, the text around it."""
    if fault.witness in _MAX or (fault.kernel or "").startswith("mojo_"):
        return True, False
    if fault.witness in _TORCH:
        return False, True
    if fault.witness in _OTHERS:
        return False, False
    if _is_python_kernel(fault):
        return False, True
    told = {one.witness for one in seen.records if one.source == fault.source}
    by_record = bool(told & _MAX), bool(told & _TORCH)
    if any(by_record):
        return by_record
    near = (fault.text, *seen.around)
    by_text = _has(near, _MAX_SIGNS), _has(near, _TORCH_SIGNS)
    return by_text if any(by_text) else (has_ops, not has_ops and fault.witness in _MOSTLY_TORCH)


def _is_python_kernel(fault: FaultRecord) -> bool:
    """A kernel whose source is Python is Triton's."""
    frame = (fault.state.frame if fault.state else None) or fault.location
    return fault.site == "device" and frame is not None and frame.file.endswith(".py")


def _server(fault: FaultRecord, seen: Seen) -> str | None:
    told = {one.witness for one in seen.records if one.source == fault.source} | {fault.witness}
    named = (name for name in _SERVERS if name in told or _has(seen.around, (_SERVER_SIGNS[name],)))
    return next(named, None)


def _at_graph(fault: FaultRecord, seen: Seen) -> bool:
    own = (fault.python.text or "",) if fault.python else ()
    return _has((*own, *seen.block), _GRAPH_SIGNS)


def _has(lines: Iterable[str], words: Sequence[str]) -> bool:
    return any(word in line for line in lines for word in words)

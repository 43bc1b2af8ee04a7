"""What to run next where something waited too long, or lost whom it waited for (formats.md 1 D, 3.6)."""

from __future__ import annotations

import re

from analyzer.advice.commands import COMMAND
from analyzer.advice.crash_steps import KILLS, stopped_steps
from analyzer.advice.program import Program
from analyzer.model import FaultRecord
from analyzer.schema import NextStep

_RECORDER = f"TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 {COMMAND}"
_PEER = re.compile(r"closed by peer \[?([0-9a-fA-F.:]+?)\]?:[0-9]+")
# A host or an address: it stands in a command that a person copies into a shell.
_STORE = re.compile(r"connect to \(([A-Za-z0-9_.:%\[\]-]+), ([0-9]+)\)")
_COMPILING = "still compiling"


def hang_steps(fault: FaultRecord, program: Program) -> list[NextStep]:
    """Commands in the order in which they should be tried."""
    if fault.kind == "hang_timeout":
        return _for_wait(fault, program)
    if fault.name in {"SIGTERM", "SIGINT", "SIGHUP"}:
        return stopped_steps()
    if fault.witness == "gloo":
        return _for_connection(fault.text)
    return _for_dead_child()


def collective_steps() -> list[NextStep]:
    """A collective that not all ranks joined."""
    return [
        NextStep(command=_RECORDER, why="keeps the last collectives of each rank with their stacks"),
        NextStep(command="py-spy dump --pid <pid of each rank>", why="where a rank waits that did not come"),
    ]


def _for_wait(fault: FaultRecord, program: Program) -> list[NextStep]:
    if program.max and _COMPILING in fault.text:
        why = "compiles beforehand, so that the server starts with a compiled model and answers in time"
        return [NextStep(command="max warm-cache <the options of your max serve>", why=why)]
    steps = [
        NextStep(
            command="py-spy dump --native --pid <pid of the worker>",
            why="while it waits: the Python line and the native call in which it stays",
        ),
        NextStep(
            command='cuda-gdb -batch -p <pid of the worker> -ex "info cuda kernels"',
            why="while it waits: which kernel runs and does not end; none = the host waits for others",
        ),
    ]
    if program.torch:
        why = "where ranks wait for one another: keeps the last collectives of each rank with their stacks"
        steps.insert(1, NextStep(command=_RECORDER, why=why))
    return steps


def _for_connection(text: str) -> list[NextStep]:
    if (store := _STORE.search(text)) is not None:
        why = "whether the store of rank 0 answers at all: started, on this address, not behind a firewall"
        return [NextStep(command=f"nc -vz {store[1]} {store[2]}", why=why)]
    peer = _PEER.search(text)
    of_peer = f"the rank on {peer[1]}" if peer else "the other ranks"
    why = "the other side closed the connection: its own log says why, and is read beside this one"
    return [NextStep(command=f"trace-analyze <this log> <log of {of_peer}>", why=why)]


def _for_dead_child() -> list[NextStep]:
    """A server that only saw its child go."""
    why = "a killed or crashed process writes nothing itself: the kernel does"
    again = "prints the Python stack of a process that dies of a signal, and leaves a core file for gdb"
    return [
        NextStep(command=KILLS, why=why),
        NextStep(command=f"ulimit -c unlimited; PYTHONFAULTHANDLER=1 {COMMAND}", why=again),
    ]

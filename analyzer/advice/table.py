"""Advice as data: which command fits which fault of which program. A new row is one line here.

The rows of a program come before what is advised of a kind in general. All rows that fit are given, in the
order of the table; only where none fits, ``next_steps`` goes on with what holds for a framework or a device.
"""

from __future__ import annotations

from analyzer.advice.commands import COMMAND
from analyzer.advice.program import Program
from analyzer.model import FaultRecord
from analyzer.schema import FaultKind, NextStep, Value
from analyzer.tables.programs import Framework
from analyzer.witness import witness_named

KILLS = "dmesg -T | grep -i -E 'killed process|oom|segfault|xid'"
_RAY_LOGS = "/tmp/ray/session_latest/logs/worker-*-{pid}.*"  # noqa: S108  (where Ray writes)


class AdviceRow(Value):
    """One step. A condition that is null holds always.

    ``program``: as the witness of the fault declares it. ``framework``: as the log shows it. ``kind``: of the
    fault. ``says``: a word of its text. ``command``, ``why``: templates with the facts ``{command}`` (the
    user's own), ``{pid}``, ``{rank}``, ``{device}``, ``{kernel}``; what the log lacks is a placeholder.
    """

    command: str
    why: str
    program: str | None = None
    framework: Framework | None = None
    kind: FaultKind | None = None
    says: str | None = None


ROWS: tuple[AdviceRow, ...] = (
    # New rows of programs go here.
    AdviceRow(
        program="ray",
        kind="peer_lost",
        command=f"cat {_RAY_LOGS}   # on the node of the actor",
        why="the driver is told that the actor died; its own output says of what",
    ),
    AdviceRow(
        program="ray",
        kind="peer_lost",
        command=f"{KILLS}   # on that node",
        why="a killed or crashed worker writes nothing itself: the driver log tells of it",
    ),
    AdviceRow(
        framework="max",
        kind="hang_timeout",
        says="still compiling",
        command="max warm-cache <the options of your max serve>",
        why="compiles beforehand, so that the server starts with a compiled model and answers in time",
    ),
    AdviceRow(
        kind="out_of_memory",
        says="RESOURCE_EXHAUSTED",
        command="XLA_FLAGS='--xla_dump_to=xla_dump --xla_dump_hlo_as_text' {command}",
        why="xla_dump/*buffer-assignment.txt lists the buffers of the step by size",
    ),
    AdviceRow(
        kind="out_of_memory",
        says="RESOURCE_EXHAUSTED",
        command="XLA_PYTHON_CLIENT_PREALLOCATE=false {command}",
        why="takes memory as it is needed: shows whether the share taken at start was too small, or "
        "another process holds the rest",
    ),
)

# Of a program of which nothing is known, and where nothing shows whose devices it uses.
BARE_ROWS: tuple[AdviceRow, ...] = (
    AdviceRow(
        kind="out_of_memory",
        command="trace-analyze record -o serve.log -- {command}",
        why="the call that failed is not the one that holds the memory: records the run, and who used it",
    ),
    AdviceRow(
        kind="hang_timeout",
        command="gdb -batch -p <pid of the worker> -ex 'thread apply all bt'",
        why="while it waits: the native call in which each thread stays",
    ),
)


def rows_for(fault: FaultRecord, program: Program) -> list[NextStep]:
    """The steps of the rows that fit, in the order of the table."""
    return [_filled(row, fault) for row in ROWS if _fits(row, fault, program)]


def bare_steps(fault: FaultRecord, program: Program) -> list[NextStep]:
    """What needs neither framework nor vendor."""
    return [_filled(row, fault) for row in BARE_ROWS if _fits(row, fault, program)]


def _fits(row: AdviceRow, fault: FaultRecord, program: Program) -> bool:
    has_framework = {"max": program.max, "torch": program.torch}
    return (
        row.program in {None, witness_named(fault.witness).program}
        and (row.framework is None or has_framework[row.framework])
        and row.kind in {None, fault.kind}
        and (row.says is None or row.says in fault.text)
    )


def _filled(row: AdviceRow, fault: FaultRecord) -> NextStep:
    facts = {
        "{command}": COMMAND,
        "{pid}": "<pid>" if fault.pid is None else str(fault.pid),
        "{rank}": "<rank>" if fault.rank is None else str(fault.rank),
        "{device}": fault.device or "<device>",
        "{kernel}": fault.kernel or "<kernel>",
    }
    command, why = row.command, row.why
    for name, fact in facts.items():
        command, why = command.replace(name, fact), why.replace(name, fact)
    return NextStep(command=command, why=why)

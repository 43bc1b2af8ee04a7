"""GPU core dumps: to open the one that the log tells of, or to ask for one (observed.md 24)."""

from __future__ import annotations

from analyzer.advice.commands import COMMAND, COREDUMP_ENV
from analyzer.advice.program import Program
from analyzer.model import FaultRecord
from analyzer.schema import Modes, NextStep
from analyzer.witness import witness_named

_NO_FILE = "<core_*.nvcudmp>"
_DEFAULT = "by default core_TIME_HOST_PID.nvcudmp in the working directory of the process"
HIDDEN = "if blocking hides it (a race): names the faulting kernel without blocking, at about two seconds"


def dump_step(fault: FaultRecord, modes: Modes, program: Program, why: str | None) -> list[NextStep]:
    """Open the dump if there is one, else ask for one.

    Args:
        fault: The root fault.
        modes: Switches of the log; ``coredump`` says that dumps were on.
        program: Whether a dump was begun, and its file.
        why: Reason for a run that makes one, null = the kernel is known already.
    """
    if program.dump or modes.coredump:
        return [] if witness_named(fault.witness).program == "cuda-gdb" else [_open(program)]
    if why is None:
        return []
    return [NextStep(command=f"{COREDUMP_ENV} {COMMAND}", why=why)]


def _open(program: Program) -> NextStep:
    file = program.dump_file or _NO_FILE
    where = "" if program.dump_file else f"; {_DEFAULT}"
    return NextStep(
        command=f'cuda-gdb -batch -ex "target cudacore {file}" -ex "info cuda kernels"',
        why=f"a GPU core dump was made: it has the faulting kernel, its grid and its line{where}",
    )

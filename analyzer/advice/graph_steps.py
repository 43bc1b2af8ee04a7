"""What to run next where kernels ran, or were captured, as a CUDA graph (formats.md 4).

One launch starts all kernels of a graph, so blocking launches name the graph and no kernel of it.
"""

from __future__ import annotations

from analyzer.advice.commands import BLOCKING, COMMAND
from analyzer.advice.program import Program
from analyzer.model import FaultRecord
from analyzer.schema import NextStep

_ANY = "<your command without CUDA graphs>"
_HOW = ' (no torch.cuda.graph; torch.compile without mode="reduce-overhead" and "max-autotune")'
_CAPTURE_CODES = range(900, 909)  # cudaErrorStreamCapture...: of CUDA's table of errors


def eager_command(program: Program) -> str:
    """The user's program with launches of their own instead of graphs."""
    flag = program.server.eager if program.server else None
    return f"{COMMAND} {flag}" if flag else _ANY


def _how(program: Program) -> str:
    return "" if program.server and program.server.eager else _HOW


def replayed_step(program: Program) -> NextStep:
    """A fault met at the replay of a graph."""
    why = (
        "the report is the replay of a whole graph, which blocking cannot look into: without graphs each "
        f"kernel is a launch of its own, and the one that fails is named{_how(program)}"
    )
    return NextStep(command=f"{BLOCKING} {eager_command(program)}", why=why)


def is_capture(fault: FaultRecord) -> bool:
    """A call that failed because a stream was being captured."""
    return fault.code in _CAPTURE_CODES and fault.vendor != "amd"


def capture_steps(program: Program) -> list[NextStep]:
    """The first error inside the capture is what counts; its end only tells that there was one."""
    why = "without a capture, the first error inside it is raised where it happens"
    why += _how(program)
    return [NextStep(command=eager_command(program), why=why)]

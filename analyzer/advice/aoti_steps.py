"""What to run next with AOTInductor's value printer: PyTorch's debugging guide (observed.md 29-32)."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.advice.torch_steps import COMMAND
from analyzer.model import FaultRecord
from analyzer.schema import NextStep, Suspect
from analyzer.tables.kinds import ACCESS

PRINTER = "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER"
FILTER = "AOT_INDUCTOR_FILTERED_KERNELS_TO_PRINT"
BLOCKING = "CUDA_LAUNCH_BLOCKING=1 PYTORCH_NO_CUDA_MEMORY_CACHING=1"
_LINES = "stdbuf -oL"
_SHOWN = 3  # suspects; a list of more is not what one looks at
_NAMES_ONLY = 3
_WHEN = "the variables count when the model is compiled, so compile it again with them"


def aoti_steps(fault: FaultRecord, suspects: Sequence[Suspect], level: int | None) -> list[NextStep]:
    """Commands for a log of the value printer.

    Args:
        fault: The root fault.
        suspects: As ranked.
        level: Of the printer; null = the log has no launches of it.
    """
    if level is None:
        return []
    steps = []
    names = list(dict.fromkeys(one.op.name for one in suspects if one.op.id is not None))[:_SHOWN]
    if names:
        listed = ",".join(names)
        why = "prints what the suspects are given and leave, and nothing else"
        steps.append(NextStep(command=f'{FILTER}="{listed}" {PRINTER}=2 {COMMAND}', why=f"{why}; {_WHEN}"))
    if level == _NAMES_ONLY and len(names) != 1 and fault.kind in ACCESS:
        why = "names prove nothing while launches are asynchronous; if they block, the last one named is it"
        kept = "stdbuf keeps the last lines, which an abort loses in a pipe or a file"
        command = f"{BLOCKING} {PRINTER}={_NAMES_ONLY} {_LINES} {COMMAND}"
        steps.insert(0, NextStep(command=command, why=f"{why}; {kept}; {_WHEN}"))
    return steps

"""What to run next where the host failed: a kill, an actor, a rank, an exception (formats.md 3.21)."""

from __future__ import annotations

from analyzer.advice import crash_steps
from analyzer.advice.container_steps import previous_log_step
from analyzer.advice.hang_steps import collective_steps, hang_steps
from analyzer.advice.memory_steps import memory_steps
from analyzer.advice.program import Program, Surroundings
from analyzer.model import FaultRecord
from analyzer.schema import NextStep
from analyzer.witness import is_unexplained, witness_named

_VERSIONS = 'nvidia-smi; python -c "import torch; print(torch.__version__, torch.version.cuda)"'
_COMPILER = "Unsupported gpu architecture"
_UNKNOWN_PROGRAM = Program()
_NOTHING_BESIDE = Surroundings()


def host_steps(
    fault: FaultRecord, program: Program = _UNKNOWN_PROGRAM, beside: Surroundings = _NOTHING_BESIDE
) -> list[NextStep]:
    """Commands in the order in which they should be tried; none for a failure that says all itself."""
    if fault.kind == "out_of_memory":
        return memory_steps(fault, program, beside.around)
    if fault.kind == "configuration":
        return _for_versions(fault.text)
    witness = witness_named(fault.witness)
    if witness.program == "kubernetes":
        return [previous_log_step(fault, beside.around)]
    if fault.kind in {"host_segfault", "host_abort"}:
        known = _for_rank(fault.rank) if witness.program == "torchrun" else []
        return known + crash_steps.crash_steps(fault)
    if fault.kind in {"hang_timeout", "peer_lost"}:
        return collective_steps() if witness.collective else hang_steps(fault, program)
    if witness.program == "torchrun":
        return _for_rank(fault.rank)
    if is_unexplained(fault) and fault.kind == "unknown" and fault.site == "host":
        return _for_exception(fault, beside)
    return []


def _for_versions(text: str) -> list[NextStep]:
    if _COMPILER in text:
        why = "the architectures that this nvcc knows: a newer toolkit is needed for the one that is missing"
        return [NextStep(command="nvcc --version; nvcc --list-gpu-arch", why=why)]
    if "driver" in text.lower():
        return [NextStep(command=_VERSIONS, why="driver beside what the build was made for")]
    return []


def _for_exception(fault: FaultRecord, beside: Surroundings) -> list[NextStep]:
    if any(crash_steps.lacks_shared_memory(line) for line in (fault.text, *beside.block)):
        return crash_steps.shared_memory_steps()
    why = "stops in the frame that raised, with its values (one process: for torchrun, one rank)"
    return [NextStep(command="python -m pdb -c continue <your script and its arguments>", why=why)]


def _for_rank(rank: int | None) -> list[NextStep]:
    which = "of the rank that failed" if rank is None else f"of rank {rank}"
    return [
        NextStep(
            command="torchrun --log-dir rank_logs --tee 3 <its other options and your script>",
            why=f"torchrun only saw the exit code; this keeps the output {which} in a file of its own",
        )
    ]

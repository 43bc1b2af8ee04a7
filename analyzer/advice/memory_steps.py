"""What to run next where memory ran out: of the device or of the host (formats.md 3.4, 3.21)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.advice.commands import COMMAND
from analyzer.advice.container_steps import docker_command, limit_command
from analyzer.advice.program import Program
from analyzer.model import FaultRecord
from analyzer.schema import NextStep
from analyzer.tables.programs import PROGRAMS

_TORCH_OOM = "out of memory. Tried to allocate"  # PyTorch's own words
_OF_HOST = "memory of the host"  # in the text of all who tell of a kill for it (parse.oom_text)
_LIMITED = "limit"
_OWN_LIMIT = "the limit of the process"  # parse.oom_text: what PyTorch was allowed is used up
_CACHE = "cache blocks"
_VLLM = next(row for row in PROGRAMS if row.name == "vllm")
_GROUP = "/sys/fs/cgroup/memory"
_USED = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"
_JOB = re.compile(r"StepId=([0-9]+)")
_UNIT = re.compile(r"(?<!\S)\S+\.(?:service|scope|slice)")


def memory_steps(fault: FaultRecord, program: Program, around: Sequence[str] = ()) -> list[NextStep]:
    """Commands in the order in which they should be tried."""
    text = fault.text
    told, host, why = text.rpartition(_OF_HOST)
    if host:
        return _for_host(told, around, limited=_LIMITED in why)
    if _CACHE in text:
        why = "more of the device for the cache; else a shorter --max-model-len, which needs fewer blocks"
        return [NextStep(command=f"{COMMAND} {_VLLM.share}", why=why)]
    if _OWN_LIMIT in text:
        return [_raise_limit(program), _history()]
    if "fragmentation" in text:
        why = "the memory is there, in pieces: lets the allocator grow its segments"
        command = f"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True {COMMAND}"
        return [NextStep(command=command, why=why)]
    if _TORCH_OOM in text and "other processes" not in text:
        return [_history()]
    return _for_device(fault, around)


def _for_device(fault: FaultRecord, around: Sequence[str]) -> list[NextStep]:
    if fault.vendor == "amd":
        return [NextStep(command="amd-smi process", why="who holds the memory of the device")]
    steps = [NextStep(command=_USED, why="who holds the memory of the device")]
    if "cudaMalloc failed" in fault.text:  # llama.cpp, alone or under ollama
        why = "if nobody else does: fewer layers, or a shorter context, on the device"
        command = f"{COMMAND} --n-gpu-layers <fewer> --ctx-size <shorter>"
        if any("ollama" in line for line in around):
            command = "OLLAMA_CONTEXT_LENGTH=<shorter> ollama serve   # fewer layers: num_gpu of the request"
        steps.append(NextStep(command=command, why=why))
    return steps


def _raise_limit(program: Program) -> NextStep:
    why = "what this process may take was set, and is used up while the device has room: raise the share"
    if program.server and program.server.share:
        return NextStep(command=f"{COMMAND} {program.server.share}", why=why)
    call = "torch.cuda.set_per_process_memory_fraction(1.0)"
    return NextStep(command=f"{call}   # Python, at the start (vLLM: gpu_memory_utilization)", why=why)


def _history() -> NextStep:
    call = "torch.cuda.memory._record_memory_history()"
    return NextStep(
        command=f"{call}   # Python, at the start",
        why="the call that failed is not the one that holds the memory; where it fails, "
        "torch.cuda.memory._dump_snapshot('oom.pickle') writes who allocated what",
    )


def _for_host(told: str, around: Sequence[str], *, limited: bool) -> list[NextStep]:
    """Memory of the host: a GPU that is full kills nobody."""
    if not limited:
        why = "while it runs: how much the host has and who holds it (weights pass through host memory)"
        return [NextStep(command="free -h; ps -eo pid,rss,args --sort=-rss | head", why=why)]
    command = _limit_command(told, around)
    if command is None:
        return [
            NextStep(
                command=f"cat {_GROUP}.max {_GROUP}.peak {_GROUP}.events",
                why="inside the container: its limit of host memory, the most it used, and how often it was "
                "killed",
            )
        ]
    why = "the limit of host memory (not of the GPU) beside what was used; weights pass through host memory"
    return [NextStep(command=command, why=why)]


def _limit_command(told: str, around: Sequence[str]) -> str | None:
    """How the limit is looked up where the kill was told; names are those of the log where it has them."""
    if '"OOMKilled"' in told or "container oom" in told:
        return docker_command(around)
    if "OOMKilled" in told:
        return limit_command(told, around)
    if "srun: error" in told or "Detected " in told:
        job = next((found[1] for line in (told, *around) if (found := _JOB.search(line))), "<job>")
        return f"sacct -j {job} -o JobID,ReqMem,MaxRSS,State"
    if (unit := _UNIT.search(told)) is not None:
        return f"systemctl show {unit[0]} -p MemoryMax,MemoryPeak"
    return None

"""What to run next where the host failed: memory, an actor, a rank, an exception (formats.md 3.4, 3.21)."""

from __future__ import annotations

from analyzer.model import FaultRecord
from analyzer.schema import NextStep
from analyzer.suspects.torch_steps import COMMAND

_XLA_MEMORY = "RESOURCE_EXHAUSTED"
_OF_HOST = "memory of the host"  # in the text of all who tell of a kill for it (parse.oom_text)
_LIMITED = "limit"
# Words of who told it, and how its limit is looked up there.
_LIMITS = (
    ('"OOMKilled"', "docker inspect -f '{{.HostConfig.Memory}}' <container>; docker stats --no-stream"),
    ("container oom", "docker inspect -f '{{.HostConfig.Memory}}' <container>; docker stats --no-stream"),
    ("OOMKilled", "kubectl describe pod <pod> | grep -A 3 Limits; kubectl top pod <pod> --containers"),
    ("srun: error", "sacct -j <job> -o JobID,ReqMem,MaxRSS,State"),
    ("Detected ", "sacct -j <job> -o JobID,ReqMem,MaxRSS,State"),
    (".service", "systemctl show <unit> -p MemoryMax,MemoryPeak"),
)
_EXCEPTION = "python_traceback"
_GROUP = "/sys/fs/cgroup/memory"
_VERSIONS = 'nvidia-smi; python -c "import torch; print(torch.__version__, torch.version.cuda)"'
_MESSAGES = "dmesg -T | grep -iE 'killed process|segfault|xid'"


def host_steps(fault: FaultRecord) -> list[NextStep]:
    """Commands in the order in which they should be tried; none for a failure that is none of these."""
    if fault.kind == "out_of_memory":
        return _for_memory(fault.text)
    if fault.kind == "configuration" and "driver" in fault.text.lower():
        return [NextStep(command=_VERSIONS, why="driver beside what the build was made for")]
    if fault.witness == "ray" and fault.kind == "peer_lost":
        return _for_actor(fault.pid)
    if fault.witness == "kubernetes":
        why = (
            "what the container printed before it ended: kubectl logs without it shows the one that runs now"
        )
        return [NextStep(command="kubectl logs <pod> -c <container> --previous", why=why)]
    if fault.witness == "torchrun":
        return _for_rank(fault.rank)
    if fault.witness == _EXCEPTION and fault.kind == "unknown" and fault.site == "host":
        why = "stops in the frame that raised, with its values (one process: for torchrun, one rank)"
        return [NextStep(command="python -m pdb -c continue <your script and its arguments>", why=why)]
    return []


def _for_memory(text: str) -> list[NextStep]:
    if text.startswith(_XLA_MEMORY):
        return [
            NextStep(
                command=f"XLA_FLAGS='--xla_dump_to=xla_dump --xla_dump_hlo_as_text' {COMMAND}",
                why="xla_dump/*buffer-assignment.txt lists the buffers of the step by size",
            ),
            NextStep(
                command=f"XLA_PYTHON_CLIENT_PREALLOCATE=false {COMMAND}",
                why="takes memory as it is needed: shows whether the share taken at start was too small, or "
                "another process holds the rest",
            ),
        ]
    told, host, why = text.rpartition(_OF_HOST)
    return _for_host_memory(told, limited=_LIMITED in why) if host else []


def _for_host_memory(told: str, *, limited: bool) -> list[NextStep]:
    """Memory of the host: a GPU that is full kills nobody."""
    if not limited:
        why = "while it runs: how much the host has and who holds it (weights pass through host memory)"
        return [NextStep(command="free -h; ps -eo pid,rss,args --sort=-rss | head", why=why)]
    inside = NextStep(
        command=f"cat {_GROUP}.max {_GROUP}.peak {_GROUP}.events",
        why="inside the container: its limit of host memory, the most it used, and how often it was killed",
    )
    command = next((command for word, command in _LIMITS if word in told), None)
    if command is None:
        return [inside]
    why = "the limit of host memory (not of the GPU) beside what was used; weights pass through host memory"
    return [NextStep(command=command, why=why)]


def _for_actor(pid: int | None) -> list[NextStep]:
    logs = f"worker-*-{pid or '<pid>'}.*"
    return [
        NextStep(
            command=f"cat /tmp/ray/session_latest/logs/{logs}   # on the node of the actor",
            why="the driver is told that the actor died; its own output says of what",
        ),
        NextStep(
            command=f"{_MESSAGES}   # on that node",
            why="a killed or crashed worker writes nothing itself: the kernel does",
        ),
    ]


def _for_rank(rank: int | None) -> list[NextStep]:
    which = "of the rank that failed" if rank is None else f"of rank {rank}"
    return [
        NextStep(
            command="torchrun --log-dir rank_logs --tee 3 <its other options and your script>",
            why=f"torchrun only saw the exit code; this keeps the output {which} in a file of its own",
        )
    ]

"""What to run next: programs that are neither MAX nor PyTorch, AMD devices, a driver log alone."""

from __future__ import annotations

from analyzer.advice.commands import COMMAND, COREDUMP_ENV, KNOWN
from analyzer.model import FaultRecord
from analyzer.schema import Confidence, NextStep
from analyzer.tables.kinds import ACCESS, HARDWARE

_HEALTH = "nvidia-smi -q -d ECC,ROW_REMAPPER,PERFORMANCE"
_DRAIN_NODE = "kubectl drain <node>   # or: scontrol update nodename=<node> state=drain reason=NVSwitch"
_FABRIC = "nvidia-smi nvlink -e; systemctl status nvidia-fabricmanager"
_SWITCH = "SXid"  # the name of a message about an NVSwitch
_AMD = f"AMD_SERIALIZE_KERNEL=3 AMD_SERIALIZE_COPY=3 AMD_LOG_LEVEL=3 {COMMAND}"


def is_hardware(fault: FaultRecord) -> bool:
    """The kernel driver says that the GPU failed: no run of the program adds to it."""
    return fault.site == "driver_log" and fault.kind in HARDWARE and fault.vendor == "nvidia"


def program_steps(fault: FaultRecord, confidence: Confidence) -> list[NextStep]:
    """For a program that is neither MAX nor PyTorch; none for a fault that names its place."""
    if fault.vendor == "amd":
        return _for_amd(confidence)
    if fault.kind not in {*ACCESS, "library_status"} or confidence in KNOWN:
        return []
    return [
        NextStep(
            command=f"{COREDUMP_ENV} {COMMAND}",
            why="names the faulting kernel without blocking, at about two seconds when it fails",
        ),
        NextStep(
            command=f"CUDA_LAUNCH_BLOCKING=1 {COMMAND}",
            why="the call that reports it is then the launch; a race can hide behind the blocking",
        ),
        NextStep(
            command=f"compute-sanitizer --tool memcheck {COMMAND}",
            why="gives kernel, thread and address; turn memory pools off, they hide overruns",
        ),
    ]


def kernel_log_steps(fault: FaultRecord) -> list[NextStep]:
    """For a root fault that only the driver told."""
    if is_hardware(fault):
        return _for_hardware(fault)
    who = f"the log of {fault.process}" if "pid=" in fault.process else "the log of the program that ran then"
    return [
        NextStep(
            command="trace-analyze <log of the program> <this driver log>",
            why=f"a driver log names no kernel and no op: add {who}",
        )
    ]


def _for_hardware(fault: FaultRecord) -> list[NextStep]:
    """Counters of what failed (board, link or switch), then no new work for it."""
    read = f"{fault.name} is read as hardware"
    if (fault.name or "").startswith(_SWITCH):
        why = f"{read}: a switch, not a GPU; errors of the links at each GPU, and the fabric manager's state"
        all_of_it = "every GPU of this node is behind the switch: keeps new work off the node"
        return [NextStep(command=_FABRIC, why=why), NextStep(command=_DRAIN_NODE, why=all_of_it)]
    until = "keeps new work off this GPU until it is reset or replaced"
    drain = NextStep(command=_drain(fault.device), why=until)
    if "NVLink" in (fault.label or ""):
        why = f"{read}: error counters of each link of this GPU ({fault.label})"
        on_gpu = f" -i {_address(fault.device)}" if fault.device else ""
        return [NextStep(command=f"nvidia-smi nvlink -e{on_gpu}", why=why), drain]
    why = f"{read}; counters of this GPU say more ({fault.label})"
    return [NextStep(command=_HEALTH, why=why), drain]


def _drain(device: str | None) -> str:
    where = _address(device) if device else "<PCI address of this GPU>"
    return f"nvidia-smi drain -p {where} -m 1   # or cordon and drain the node"


def _address(device: str) -> str:
    """``0000:9b:00.0``: the driver log leaves the function out, nvidia-smi wants it."""
    return device if "." in device else f"{device}.0"


def _for_amd(confidence: Confidence) -> list[NextStep]:
    if confidence in KNOWN:
        return []
    why = "runs one kernel at a time and prints its name: the last ShaderName before the fault is it"
    return [NextStep(command=_AMD, why=why)]

"""What to run next: programs that are neither MAX nor PyTorch, AMD devices, a kernel log alone."""

from __future__ import annotations

from analyzer.model import FaultRecord
from analyzer.schema import Confidence, NextStep
from analyzer.suspects.torch_steps import COMMAND, COREDUMP_ENV

WITNESSES = frozenset({"cuda_macros", "ggml", "nccl", "process_group_nccl", "trtllm", "xla"})
_DEVICE_FAULTS = frozenset(
    {
        "illegal_address",
        "misaligned_address",
        "invalid_address_space",
        "launch_failure",
        "illegal_instruction",
        "library_status",
    }
)
_HARDWARE = frozenset({"ecc_error", "device_lost"})
_HEALTH = "nvidia-smi -q -d ECC,ROW_REMAPPER,PERFORMANCE"
_DRAIN = "nvidia-smi drain -p <PCI address of this GPU> -m 1   # or cordon and drain the node"
_AMD = f"AMD_SERIALIZE_KERNEL=3 AMD_SERIALIZE_COPY=3 AMD_LOG_LEVEL=3 {COMMAND}"
_RECORDER = f"TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 {COMMAND}"


def is_hardware(fault: FaultRecord) -> bool:
    """The kernel driver says that the GPU failed: no run of the program adds to it."""
    return fault.site == "kernel_log" and fault.kind in _HARDWARE and fault.vendor == "nvidia"


def driver_steps(fault: FaultRecord, confidence: Confidence) -> list[NextStep]:
    """Commands in the order in which they should be tried; none for a fault that names its place."""
    if fault.site == "kernel_log":
        return _for_kernel_log(fault)
    if fault.vendor == "amd":
        return _for_amd(confidence)
    if fault.kind in {"hang_timeout", "peer_lost"} and fault.code is None:
        return _for_ranks()
    if fault.kind not in _DEVICE_FAULTS or confidence in {"proven", "confirmed"}:
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


def _for_kernel_log(fault: FaultRecord) -> list[NextStep]:
    if is_hardware(fault):
        why = f"{fault.name} is read as hardware; counters of this GPU say more ({fault.label})"
        drain = NextStep(command=_DRAIN, why="keeps new work off this GPU until it is reset or replaced")
        return [NextStep(command=_HEALTH, why=why), drain]
    who = f"the log of {fault.process}" if "pid=" in fault.process else "the log of the program that ran then"
    return [
        NextStep(
            command="trace-analyze <log of the program> <this kernel log>",
            why=f"a kernel log names no kernel and no op: add {who}",
        )
    ]


def _for_amd(confidence: Confidence) -> list[NextStep]:
    if confidence in {"proven", "confirmed"}:
        return []
    why = "runs one kernel at a time and prints its name: the last ShaderName before the fault is it"
    return [NextStep(command=_AMD, why=why)]


def _for_ranks() -> list[NextStep]:
    return [
        NextStep(command=_RECORDER, why="keeps the last collectives of each rank with their stacks"),
        NextStep(command="py-spy dump --pid <pid of each rank>", why="where a rank waits that did not come"),
    ]

"""What to run next on a PyTorch program (formats.md 3.4, 3.8; observed.md 21-26)."""

from __future__ import annotations

from analyzer.model import FaultRecord
from analyzer.schema import Confidence, Modes, NextStep

COMMAND = "<your command>"
COREDUMP_ENV = (
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_SHOW_PROGRESS=1 "
    "CUDA_COREDUMP_GENERATION_FLAGS=skip_nonrelocated_elf_images,skip_global_memory,"
    "skip_shared_memory,skip_local_memory"
)
WITNESSES = frozenset({"c10", "triton", "inductor", "device_assert", "oom", "cuda_libraries"})
DEVICE_FAULTS = frozenset(
    {
        "illegal_address",
        "misaligned_address",
        "invalid_address_space",
        "launch_failure",
        "illegal_instruction",
        "library_status",
    }
)
_TORCH_OOM = "out of memory. Tried to allocate"  # PyTorch's own words
_KNOWN = frozenset({"proven", "confirmed"})


def torch_steps(fault: FaultRecord, confidence: Confidence, modes: Modes) -> list[NextStep]:
    """Commands in the order in which they should be tried; none for a kind that needs no further run."""
    if fault.kind in DEVICE_FAULTS:
        return _device_fault(fault, confidence, modes)
    if fault.kind == "device_assert":
        return [] if modes.launch_blocking else [_line_of_assert(fault)]
    if fault.kind == "nan":
        return [_step("TORCH_COMPILE_DEBUG=1", f"writes the code that made {fault.label or 'the buffer'}")]
    if fault.kind == "no_kernel_image":
        why = "compares the architectures of the build with the device"
        show = "import torch; print(torch.cuda.get_arch_list(), torch.cuda.get_device_capability())"
        return [NextStep(command=f'python -c "{show}"', why=why)]
    if fault.kind == "out_of_memory":
        return _out_of_memory(fault)
    return []


def _device_fault(fault: FaultRecord, confidence: Confidence, modes: Modes) -> list[NextStep]:
    """Blocking first, then a core dump, which also catches what blocking hides, then the sanitizer."""
    if fault.vendor == "amd":
        return [
            _step(
                "AMD_SERIALIZE_KERNEL=3 AMD_SERIALIZE_COPY=3 AMD_LOG_LEVEL=3",
                "runs kernels one by one and logs each: the last ShaderName is the one that failed",
            )
        ]
    steps = []
    if confidence not in _KNOWN and not modes.launch_blocking:
        steps.append(_blocking("the error is then raised by the launch that caused it, with its Python line"))
    if confidence not in _KNOWN and not modes.coredump:
        why = (
            "if blocking hides it (a race): names the faulting kernel without blocking, at about two seconds"
        )
        steps.append(_step(COREDUMP_ENV, why))
    return [*steps, _sanitizer()]


def _line_of_assert(fault: FaultRecord) -> NextStep:
    """The assert names the kernel; what is missing is who launched it."""
    why = "adds the Python line whose launch failed the assertion"
    return _step("AMD_SERIALIZE_KERNEL=3", why) if fault.vendor == "amd" else _blocking(why)


def _blocking(why: str) -> NextStep:
    return _step("CUDA_LAUNCH_BLOCKING=1 PYTORCH_NO_CUDA_MEMORY_CACHING=1", why)


def _sanitizer() -> NextStep:
    return _step(
        "PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck",
        "gives the exact thread, address and allocation; the caching allocator is off because pooled memory "
        "hides overruns",
    )


def _out_of_memory(fault: FaultRecord) -> list[NextStep]:
    if "fragmentation" in fault.text:
        why = "the memory is there, in pieces: lets the allocator grow its segments"
        return [_step("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", why)]
    if "other processes" in fault.text:
        return [
            NextStep(
                command="nvidia-smi --query-compute-apps=pid,used_memory --format=csv", why="who holds it"
            )
        ]
    if _TORCH_OOM in fault.text:
        command = (
            "torch.cuda.memory._record_memory_history()   # at start; _dump_snapshot(...) where it fails"
        )
        return [NextStep(command=command, why="the call that failed is not the one that holds the memory")]
    return []


def _step(settings: str, why: str) -> NextStep:
    return NextStep(command=f"{settings} {COMMAND}", why=why)

"""Parts of the commands that are advised."""

from __future__ import annotations

COMMAND = "<your command>"
COREDUMP_ENV = (
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_SHOW_PROGRESS=1 "
    "CUDA_COREDUMP_GENERATION_FLAGS=skip_nonrelocated_elf_images,skip_global_memory,"
    "skip_shared_memory,skip_local_memory"
)
BLOCKING = "CUDA_LAUNCH_BLOCKING=1 PYTORCH_NO_CUDA_MEMORY_CACHING=1"
TORCH_POOL_OFF = "PYTORCH_NO_CUDA_MEMORY_CACHING=1"
MAX_POOL_OFF = "MODULAR_DEVICE_CONTEXT_MEMORY_MANAGER_SIZE_PERCENT=0"
KNOWN = frozenset({"proven", "confirmed"})  # the op is known: a run that only names it adds nothing

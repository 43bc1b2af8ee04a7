"""What a Python exception is about, by its name and its words. No witness by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.schema import FaultKind

_PROBABILITIES = "probability tensor contains either "  # torch.multinomial looked at what others made
_NOT_A_NUMBER = re.compile(
    r"^invalid value \((?:nan|inf)\) encountered in "
)  # jax_debug_nans, jax_debug_infs
# What PyTorch, MAX and nvcc say where driver, device and build do not fit.
_SETUP = (
    "NVIDIA driver on your system is too old",
    "Found no NVIDIA driver on your system",
    "No CUDA GPUs are available",
    "No HIP GPUs are available",
    "not compiled with CUDA enabled",
    "support your current NVIDIA GPU driver",
    "Unsupported gpu architecture",
    # vLLM where model, context and memory do not fit
    "KV cache is needed, which is larger than",
    "No available memory for the cache blocks",
    "less than desired GPU memory utilization",
    "Bfloat16 is only supported on GPUs",
    "is greater than the derived max_model_len",
    # CUDA's initialisation: fabric manager, driver
    "Error 802: system not yet initialized",
    "Error 803: system has unsupported display driver",
    # the host and the hub
    "Address already in use",
    "address already in use",
    "EADDRINUSE",
    "You are trying to access a gated repo",
    "does not appear to have a file named ",
    "is not a local folder and is not a valid model identifier",
)
_PEER = ("Connection closed by peer", "Connection reset by peer", "communicator was aborted")
_MEMORY = ("CUDA out of memory occurred when warming up",)
_KINDS: dict[str, FaultKind] = {
    "MemoryError": "out_of_memory",
    "ModuleNotFoundError": "configuration",
    "ImportError": "configuration",
    "FileNotFoundError": "configuration",
    "PermissionError": "configuration",
    "NotADirectoryError": "configuration",
    "GatedRepoError": "configuration",
    "RepositoryNotFoundError": "configuration",
    "ConnectionResetError": "peer_lost",
    "ConnectionRefusedError": "peer_lost",
    "BrokenPipeError": "peer_lost",
    "TimeoutError": "hang_timeout",
}
# A child died: what of, somebody else can know (the kernel's log, the child itself).
_RELAYS = re.compile(
    r"^cancelled$"  # vLLM's shm_broadcast, where the engine gives up because a worker died
    r"|^DataLoader worker \(pid.* (?:is killed by signal|exited unexpectedly)"
    r"|^process [0-9]+ terminated with |^A process in the process pool was terminated abruptly"
)
# PyTorch's extensions and FlashInfer raise with all that the compiler printed.
_BUILD = ("Ninja build failed", "Error building extension '")
_BUILD_ENDS = "ninja: build stopped"
_COMPILER = re.compile(r"\b(?:fatal|error)\b *:", re.IGNORECASE)


def kind_of(name: str, text: str) -> FaultKind:
    """The kind of an exception.

    Args:
        name: Its class, without the module.
        text: What it says, all lines.
    """
    if _PROBABILITIES in text or _NOT_A_NUMBER.search(text):
        return "nan"
    if any(words in text for words in _PEER):
        return "peer_lost"
    if any(words in text for words in _MEMORY):
        return "out_of_memory"
    return "configuration" if any(words in text for words in _SETUP) else _KINDS.get(name, "unknown")


def is_relay(text: str) -> bool:
    """Whether an exception only says that a child process failed."""
    return _RELAYS.search(text) is not None


def is_build(text: str) -> bool:
    """Whether an exception holds the output of a compiler."""
    return any(words in text for words in _BUILD)


def build_end(lines: Sequence[str], first: int) -> int | None:
    """Position after the last line of a compiler's output; null = its end is not among ``lines``."""
    return next((n + 1 for n in range(first, len(lines)) if _BUILD_ENDS in lines[n]), None)


def headline(text: str) -> str:
    """The first line of what an exception says; a failed build, with the compiler's first error."""
    lines = text.splitlines()
    error = next((line.strip() for line in lines[1:] if _COMPILER.search(line)), None)
    return f"{lines[0]} {error}" if error and is_build(text) else lines[0]

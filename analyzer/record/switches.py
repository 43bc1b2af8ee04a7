"""Which environment variables (or which tool around the command) make the next crash readable.

Every switch has its reason, so that what is printed explains itself. What the user has set stays as it is;
only the lists ``MODULAR_DEBUG`` and ``PYTHONPATH`` get entries added.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from analyzer.errors import UsageError
from analyzer.record.ops.settings import INPUTS_ENV, OPS_ENV, RING_ENV, RING_OPS, STEPS_ENV
from analyzer.schema import Value

Target = Literal["max", "torch", "aoti", "vllm", "sglang", "rocm", "any"]
Level = Literal["light", "ops", "sync", "sanitize"]

HOOKS = Path(__file__).resolve().parent / "hooks"
# observed.md 24: with the memories in it a core dump takes minutes and as much disk as the GPU has memory.
COREDUMP_FLAGS = "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory"
_TORCH: frozenset[Target] = frozenset({"torch", "vllm", "sglang", "rocm", "any"})
_MAX: frozenset[Target] = frozenset({"max", "any"})
_CUDA: frozenset[Target] = frozenset({"max", "torch", "aoti", "vllm", "sglang", "any"})
_SANITIZER = ("compute-sanitizer", "--tool", "memcheck", "--target-processes", "all", "--launch-timeout", "0")


class Switch(Value):
    """One environment variable to set. ``kept`` = the user's own value stands and ours is not used."""

    name: str
    value: str
    why: str
    kept: bool = False


class Plan(Value):
    """How to start the command. ``notes`` are for the user, one line each."""

    command: list[str]
    switches: list[Switch]
    notes: list[str] = msgspec.field(default_factory=list)

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """``base`` with the switches that are not kept."""
        return {**base, **{one.name: one.value for one in self.switches if not one.kept}}


def plan_switches(
    command: Sequence[str],
    target: Target,
    level: Level,
    env: Mapping[str, str],
    *,
    coredump: Path | None = None,
    ops: Path | None = None,
) -> Plan:
    """Choose the switches for a program and a level.

    Args:
        command: What the user wants to run.
        target: The kind of program; ``any`` sets what costs nothing where it is not understood.
        level: ``light``: what can stay on (GPU core dump, fault handler, ring of PyTorch ops without values).
            ``ops``: each op by name. ``sync``: blocking launches as well. ``sanitize``: under
            compute-sanitizer, ten to a hundred times slower.
        env: The environment that the user starts us in; what it sets wins.
        coredump: Stem of GPU core dump files; null = the driver's default, the working directory.
        ops: Folder for the rings of the PyTorch op log; null = no op log of PyTorch.

    Raises:
        UsageError: ``sanitize`` without compute-sanitizer on PATH, or for ROCm.
    """
    wanted = _for_crashes(target, level, coredump)
    if target in _MAX:
        wanted.append(_modular_debug(level, env.get("MODULAR_DEBUG", "")))
    if target in _TORCH and ops is not None:
        wanted += _torch_ops(level, ops, env)
    if target in _MAX and level != "light":
        wanted += _max_steps(
            env, paths=not any(one is not None and one.name == "PYTHONPATH" for one in wanted)
        )
    wanted += _for_target(target, level)
    if level == "sync":
        wanted += _blocking(target)
    switches = [_keep_users(one, env) for one in wanted if one is not None]
    full = _sanitized(command, target) if level == "sanitize" else list(command)
    return Plan(command=full, switches=switches, notes=_notes(switches, env))


def _keep_users(switch: Switch, env: Mapping[str, str]) -> Switch:
    if switch.name not in env or switch.name in {"MODULAR_DEBUG", "PYTHONPATH"}:
        return switch
    return Switch(name=switch.name, value=env[switch.name], why="set by the user", kept=True)


def _for_crashes(target: Target, level: Level, coredump: Path | None) -> list[Switch | None]:
    found: list[Switch | None] = [
        Switch(name="PYTHONFAULTHANDLER", value="1", why="Python stack of a host segmentation fault")
    ]
    if target not in _CUDA or level == "sanitize":  # the sanitizer holds the debugger interface of the driver
        return found
    found += [
        Switch(
            name="CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
            value="1",
            why="names the kernel of a device fault, which then aborts the process",
        ),
        Switch(name="CUDA_COREDUMP_SHOW_PROGRESS", value="1", why="prints that kernel into the log"),
        Switch(name="CUDA_COREDUMP_GENERATION_FLAGS", value=COREDUMP_FLAGS, why="keeps the dump small"),
    ]
    if coredump is not None:
        value = f"{coredump}.%h.%p.nvcudmp"
        found.append(Switch(name="CUDA_COREDUMP_FILE", value=value, why="puts the dump beside the log"))
    return found


def _modular_debug(level: Level, users: str) -> Switch | None:
    """The user's options first, ours added where he has none of that name.

    Only capitals are understood: ``op-log-level=trace`` ends MAX with a TypeError (observed.md 1).
    """
    ours = {
        "light": ["source-tracebacks"],
        "ops": ["op-log-level=TRACE", "source-tracebacks"],
        "sync": ["op-log-level=TRACE", "source-tracebacks", "device-sync-mode"],
        "sanitize": ["op-log-level=TRACE", "source-tracebacks", "device-sync-mode"],
    }[level]
    theirs = [part for part in users.split(",") if part.strip()]
    names = {part.partition("=")[0].strip() for part in theirs}
    added = [part for part in ours if part.partition("=")[0] not in names]
    if not added:
        return Switch(name="MODULAR_DEBUG", value=users, why="set by the user", kept=True)
    return Switch(
        name="MODULAR_DEBUG", value=",".join(theirs + added), why="MAX names each op and its source"
    )


def _max_steps(env: Mapping[str, str], *, paths: bool) -> list[Switch | None]:
    """On a CPU MAX prints nothing where an execution begins."""
    found: list[Switch | None] = [
        Switch(name=STEPS_ENV, value="1", why="marks each execution of a model: the steps of the op log")
    ]
    if paths:
        path = os.pathsep.join([str(HOOKS), *filter(None, [env.get("PYTHONPATH")])])
        found.insert(
            0, Switch(name="PYTHONPATH", value=path, why="loads the marks when the program imports max")
        )
    return found


def _torch_ops(level: Level, folder: Path, env: Mapping[str, str]) -> list[Switch | None]:
    path = os.pathsep.join([str(HOOKS), *filter(None, [env.get("PYTHONPATH")])])
    inputs = {"light": "none", "ops": "cpu", "sync": "sync", "sanitize": "cpu"}[level]
    why = {
        "none": "no values of index tensors",
        "cpu": "integer inputs of CPU ops are saved; CUDA values are not read, that would synchronise",
        "sync": "integer inputs are saved, CUDA ones too: each op waits for them",
    }[inputs]
    return [
        Switch(name="PYTHONPATH", value=path, why="loads the op log when the program imports torch"),
        Switch(name=OPS_ENV, value=str(folder), why="ring of the last ops of each process"),
        Switch(name=RING_ENV, value=str(RING_OPS), why="ops that a ring holds"),
        Switch(name=INPUTS_ENV, value=inputs, why=why),
    ]


def _for_target(target: Target, level: Level) -> list[Switch | None]:
    if target == "aoti" and level != "light":
        # Level 2 reads every value back and so changes what is asynchronous (observed.md 30-32).
        why = "prints each kernel's launch; takes effect when the package is compiled"
        return [Switch(name="AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER", value="3", why=why)]
    if target == "rocm" and level != "light":
        return [Switch(name="AMD_LOG_LEVEL", value="3", why="prints each kernel's name (formats.md 3.17)")]
    return []


def _blocking(target: Target) -> list[Switch | None]:
    if target == "rocm":
        names = ("AMD_SERIALIZE_KERNEL", "AMD_SERIALIZE_COPY")
        return [Switch(name=name, value="3", why="waits before and after each launch") for name in names]
    if target == "max":
        return []  # device-sync-mode does it
    found: list[Switch | None] = [
        Switch(name="CUDA_LAUNCH_BLOCKING", value="1", why="each launch waits: the report names the op")
    ]
    if target == "aoti":  # observed.md 32
        why = "an address past a tensor leaves its allocation"
        found.append(Switch(name="PYTORCH_NO_CUDA_MEMORY_CACHING", value="1", why=why))
    return found


def _sanitized(command: Sequence[str], target: Target) -> list[str]:
    if target == "rocm":
        raise UsageError(
            "--level sanitize needs compute-sanitizer, which knows NVIDIA GPUs only; try --level sync"
        )
    if shutil.which(_SANITIZER[0]) is None:
        raise UsageError("--level sanitize needs compute-sanitizer on PATH (CUDA toolkit, folder bin)")
    return [*_SANITIZER, *command]


def _notes(switches: list[Switch], env: Mapping[str, str]) -> list[str]:
    notes = [f"{one.name}={one.value} is yours and stays" for one in switches if one.kept]
    for part in env.get("MODULAR_DEBUG", "").split(","):
        name, _, value = part.strip().partition("=")
        if name == "op-log-level" and value != value.upper():
            notes.append(f"MAX refuses {part.strip()}: write op-log-level={value.upper()}")
    return notes

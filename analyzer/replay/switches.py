"""Environment variables of an attempt: what makes launches synchronous, and what makes the device speak."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from analyzer.replay.hooks.config import VARIABLE, HookConfig
from analyzer.replay.report import Rung
from analyzer.schema import Result
from analyzer.tables.programs import program_row
from analyzer.witness import witness_named

Framework = Literal["max", "torch", "other"]
HOOKS = Path(__file__).parent / "hooks"
_VIEWS: dict[str, Framework] = {"max_ops": "max", "torch_ops": "torch"}  # op logs are no witness's
_BLOCKING = {
    "CUDA_LAUNCH_BLOCKING": "1",
    "AMD_SERIALIZE_KERNEL": "3",  # wait before and after each kernel (HIP)
}
_UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
_COREDUMP = {  # observed.md 24; the flags keep the file small, the printed lines name the kernel
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
    "CUDA_COREDUMP_SHOW_PROGRESS": "1",
    "CUDA_COREDUMP_GENERATION_FLAGS": "skip_nonrelocated_elf_images,skip_global_memory,"
    "skip_shared_memory,skip_local_memory",
}
_SERIALISED: frozenset[Rung] = frozenset({"blocking", "control", "uncached", "sanitizer", "shrink"})


def framework_of(result: Result) -> Framework:
    """Whose program wrote the log, from the witnesses that were found in it."""
    found = {_framework(name) for one in result.inputs for name in one.witnesses}
    return "max" if "max" in found else "torch" if "torch" in found else "other"


def _framework(name: str) -> Framework | None:
    """Of one witness: its program's, or that of the program in which it mostly stands."""
    witness = witness_named(name)
    row = program_row(witness.program or witness.usually)
    return _VIEWS.get(name) or (row.framework if row else None)


def is_serialised(rung: Rung) -> bool:
    """Whether a fault in such an attempt is met where it happens."""
    return rung in _SERIALISED


def switches(rung: Rung, user: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The variables that an attempt sets, merged with what the user had set.

    The switches of all frameworks are set together: a program may use several, and each ignores the others'.

    Args:
        rung: What is tried.
        user: The user's environment.
        folder: Gets core files.
    """
    found = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    serialised = is_serialised(rung) and rung != "sanitizer"  # the sanitizer serialises by itself
    found["MODULAR_DEBUG"] = merge_modular_debug(user.get("MODULAR_DEBUG", ""), sync=serialised)
    if serialised:
        found.update(_BLOCKING)
    if rung == "uncached":
        found.update(_UNCACHED)
    if rung == "coredump":
        found.update(_COREDUMP, CUDA_COREDUMP_FILE=str(folder / "core.%h.%p"))
    if rung == "sanitizer":
        found.update(_UNCACHED)  # the pool hides the borders of tensors from it
    return found


def merge_modular_debug(user: str, *, sync: bool) -> str:
    """``MODULAR_DEBUG`` with op log and source tracebacks, and sync mode if asked for.

    Sync mode is latched when the device context is created (observed.md 20), so it must be there at start.
    The level must be upper case (observed.md 1). The user's other options are kept.
    """
    ours = ["op-log-level=TRACE", "source-tracebacks", *(["device-sync-mode"] if sync else [])]
    names = {"op-log-level", "source-tracebacks", "device-sync-mode"}
    theirs = [option.strip() for option in user.split(",") if option.strip()]
    return ",".join([*ours, *(option for option in theirs if option.split("=")[0] not in names)])


def environment(user: Mapping[str, str], set_here: Mapping[str, str], hook: HookConfig) -> dict[str, str]:
    """The whole environment of a child: the user's, the switches, and the hook in front of ``PYTHONPATH``.

    Launch blocking and core dumps of the user's are taken off where the attempt does not set them: they would
    make an asynchronous attempt synchronous.
    """
    path = os.pathsep.join([str(HOOKS), *filter(None, [user.get("PYTHONPATH")])])
    return {**_kept(user, set_here), **set_here, "PYTHONPATH": path, VARIABLE: hook.dump()}


def worker_environment(
    user: Mapping[str, str], set_here: Mapping[str, str], imports: Path | None
) -> dict[str, str]:
    """The whole environment of a child that executes single ops: as ``environment``, but without the hook.

    Args:
        user: The user's environment.
        set_here: The switches of the attempt.
        imports: Folder that the child imports this package from (null = it needs it not). The user's
            ``PYTHONPATH`` follows it, made absolute, because the child runs in a folder of its own.
    """
    given = filter(None, user.get("PYTHONPATH", "").split(os.pathsep))
    parts = [*([str(imports)] if imports else []), *(str(Path(part).absolute()) for part in given)]
    without = {VARIABLE, "PYTHONPATH"}
    kept = {name: value for name, value in _kept(user, set_here).items() if name not in without}
    return {**kept, **set_here, **({"PYTHONPATH": os.pathsep.join(parts)} if parts else {})}


def _kept(user: Mapping[str, str], set_here: Mapping[str, str]) -> dict[str, str]:
    dropped = {*_BLOCKING, *_UNCACHED, *_COREDUMP} - set(set_here)
    return {name: value for name, value in user.items() if name not in dropped}

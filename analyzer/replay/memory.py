"""How much memory the processes of an attempt may hold, and how much they do.

Not the address space (``RLIMIT_AS``) and not ``RLIMIT_DATA``: a program with CUDA reserves terabytes that it
never touches. What counts is what the kernel cannot take back: anonymous pages, and shared memory once.
Weights that are mapped from a file are no part of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

SHARE = 0.95  # of what is free when an attempt begins: beyond it the kernel ends something, and not the child
_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_KIB = 1024


def memory_limit(asked_bytes: int | None) -> int | None:
    """Bytes that an attempt may hold; null = any number.

    Args:
        asked_bytes: By the user: 0 = any number, null = nothing was asked for.
    """
    if asked_bytes is not None:
        return asked_bytes or None
    free = [one for one in (_free_of_machine(), *_free_of_groups()) if one is not None]
    return int(min(free) * SHARE) if free else None


def held_bytes(pids: Iterable[int]) -> int:
    """What processes hold together that cannot be taken back."""
    private, shared = 0, 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = _fields((_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace"))
            private += fields.get("RssAnon", fields.get("VmRSS", 0)) + fields.get("VmSwap", 0)
            shared = max(shared, fields.get("RssShmem", 0))  # the same pages in each of them, mostly
    return private + shared


def told_size(size_bytes: int) -> str:
    """``1.5 GB``, ``200 MB``."""
    return f"{size_bytes / 1e9:.3g} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.3g} MB"


def _free_of_machine() -> int | None:
    with contextlib.suppress(OSError):
        return _fields((_PROC / "meminfo").read_text(encoding="ascii")).get("MemAvailable")
    return None


def _fields(text: str) -> dict[str, int]:
    """``Name:   123 kB`` lines, in bytes."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isascii() and words[0].isdigit():
            found[name] = int(words[0]) * _KIB
    return found


def _free_of_groups() -> Iterable[int | None]:
    """What the limits of our control group and of those above it leave (version 2 and 1)."""
    with contextlib.suppress(OSError):
        for line in (_PROC / "self" / "cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield from _walk(_CGROUPS, path, "memory.max", "memory.current", "inactive_file")
            elif "memory" in controllers.split(","):
                names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
                yield from _walk(_CGROUPS / "memory", path, *names)


def _walk(root: Path, path: str, limit: str, used: str, cache: str) -> Iterable[int | None]:
    group = root / path.lstrip("/")
    for folder in (group, *group.parents):
        if folder == root.parent:
            return
        yield _left(folder, limit, used, cache)


def _left(folder: Path, limit: str, used: str, cache: str) -> int | None:
    """Null = no limit there, or no such group in this container."""
    try:
        most, held = (int((folder / name).read_text(encoding="ascii")) for name in (limit, used))
        rows = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):  # ValueError: "max"
        return None
    reclaimable = next((int(row.split()[1]) for row in rows if row.startswith(f"{cache} ")), 0)
    return max(0, most - held + reclaimable)

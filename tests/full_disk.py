"""A small file system of our own that gets full, without rights of an administrator."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_UNSHARE = ("unshare", "--map-root-user", "--mount", "--user", "sh", "-c")


def on_small_disk(folder: Path, size: str, command: Sequence[str]) -> list[str]:
    """A command in a mount namespace of its own, in which ``folder`` is a file system of that size.

    What is in it is gone when the command ends.
    """
    script = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    return [*_UNSHARE, script, str(folder), *command]


@functools.cache
def _can() -> bool:
    probe = [*_UNSHARE, "mount -t tmpfs -o size=64k tmpfs /mnt"]
    try:
        return subprocess.run(probe, check=False, capture_output=True, timeout=20).returncode == 0
    except OSError:
        return False


def needs_small_disk() -> None:
    """Skip where user namespaces are switched off."""
    if not _can():
        pytest.skip("no user namespaces with mounts here")

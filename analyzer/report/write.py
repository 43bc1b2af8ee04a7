"""Writing a report so that a failure never costs the old one."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from analyzer.errors import InputError
from analyzer.scratch import unfinished_file

HINTS = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.EROFS: "the file system is read-only",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "a part of the path is no folder",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "the name is too long",
}
DEFAULT_MODE = 0o666


class WriteError(InputError):
    """A report could not be written; an older one, if any, is untouched."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary name in the same folder, flush it to the disk, then rename.

    A symbolic link keeps its target's place; a device or pipe (``/dev/stdout``) is written to directly.

    Raises:
        WriteError: No space, no permission, no such folder; an existing file is as it was.
    """
    try:
        _write(path.resolve() if path.is_symlink() else path, content)
    except OSError as error:
        hint = HINTS.get(error.errno or 0, error.strerror or str(error))
        kept = "; the old report is unchanged" if os.path.isfile(path) else ""  # noqa: PTH113 (never raises)
        raise WriteError(f"cannot write the report {path}: {hint}{kept}") from error


def _write(path: Path, content: bytes) -> None:
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with unfinished_file(path) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), _mode(path))
        os.fsync(file.fileno())
    _sync_folder(path.parent)


def _mode(path: Path) -> int:
    """The old file's permissions, else what a plain ``open`` would give (mkstemp gives 0600)."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return DEFAULT_MODE & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last; not every file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

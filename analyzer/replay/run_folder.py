"""A folder for each replay: two that run at once in one directory must not read one another's journals."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from analyzer.errors import ReplaySetupError
from analyzer.scratch import owned_until_told

KEPT = 5  # finished replays of a directory whose journals and outputs stay, this one included

_NAME = re.compile(r"[0-9]{8}T[0-9]{6}-")


@contextlib.contextmanager
def run_folder(parent: Path) -> Iterator[Path]:
    """A new folder in ``parent``, ours until the block ends; older ones beyond ``KEPT`` are removed.

    The folder stays once a report is out, which names the outputs in it. A lock on it says that its replay is
    running, so that no other one takes it for an old one; the lock ends with the process, however that ends.

    Raises:
        ReplaySetupError: It cannot be made.
    """
    folder = parent / f"{time.strftime('%Y%m%dT%H%M%S-', time.gmtime())}{uuid.uuid4().hex[:12]}"
    with owned_until_told(folder), _made(folder):
        yield folder


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    parent = folder.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _locked(parent):  # nobody removes what we have made and not yet locked
            folder.mkdir(mode=0o700)
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            _try_lock(lock)
            _remove_old(parent)
    except OSError as error:
        raise ReplaySetupError(
            f"{parent}: no folder for the attempts can be made: {error.strerror or error}; the environment "
            "variable XDG_STATE_HOME names another place"
        ) from error
    try:
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: removing waits for nobody then
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_old(parent: Path) -> None:
    """The oldest finished ones. Names begin with the time, so their order is that of age."""
    ours = (one for one in parent.iterdir() if _NAME.match(one.name) and one.is_dir())
    folders = sorted(one for one in ours if not one.is_symlink())
    for folder in folders[:-KEPT]:
        if _is_finished(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_finished(folder: Path) -> bool:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _try_lock(handle)
    finally:
        os.close(handle)

"""What a run makes and must not leave behind: folders of its own, files that are not whole yet.

One owner for the whole process. A path is noted before it is made and forgotten after it is gone, so that at
any moment all that is there is known: a signal, a full disk and Ctrl-C find it (``remove_all``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from analyzer.errors import OutputError

ENDING_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_NAME_CHARS = 100  # of the target in the name of an unfinished file: names may have 255 bytes

_owned: dict[Path, bool] = {}  # true = it stays once it was told of


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder for large copies (``TMPDIR``), removed with all that is in it when the block ends.

    Raises:
        OutputError: None can be made.
    """
    # Not tempfile.mkdtemp(): it probes with a file and tells the name afterwards.
    with owned(_place() / f"trace-analyze-{os.urandom(16).hex()}") as folder:
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            told = f"{folder.parent}: no folder for temporary files can be made: {error.strerror or error}"
            raise OutputError(f"{told}; the environment variable TMPDIR names another place") from error
        yield folder


def _place() -> Path:
    """The first folder for temporary files that we may write in; else the first, to say what is wrong."""
    named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
    places = [Path(name) for name in (*named, "/tmp", "/var/tmp")]  # noqa: S108 (our folder in it is closed)
    good = (place for place in places if place.is_dir() and os.access(place, os.W_OK | os.X_OK))
    return next(good, places[0]).absolute()


@contextlib.contextmanager
def unfinished_file(target: Path) -> Iterator[Path]:
    """A new, empty file beside ``target`` that only we can open; it takes the place of ``target`` at the end.

    Where the block raises, ``target`` is as it was and the file is gone.

    Raises:
        OSError: It cannot be made, or not be put in place.
    """
    name = f".{target.name[:_NAME_CHARS]}.{os.urandom(16).hex()}.tmp"
    with owned(target.parent / name) as file:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield file
        file.replace(target)


@contextlib.contextmanager
def owned(path: Path) -> Iterator[Path]:
    """Answer for what is made at ``path``: it is gone when the block ends."""
    _owned[path] = False
    try:
        yield path
    finally:
        _remove(path)
        _owned.pop(path, None)


@contextlib.contextmanager
def owned_until_told(path: Path) -> Iterator[Path]:
    """The same, but what is made outlives the block: until ``keep_told``, or the end of the process."""
    _owned[path] = True
    try:
        yield path
    except BaseException:
        _remove(path)
        _owned.pop(path, None)
        raise


def keep_told() -> None:
    """What was told to the user names what we have made for that: it stays."""
    for path in [path for path, told in _owned.items() if told]:
        del _owned[path]


def remove_all() -> None:
    """Remove whatever is there still. For the end of the process, however it comes."""
    for path in list(_owned):
        _remove(path)
        _owned.pop(path, None)


def _remove(path: Path) -> None:
    """A file, or a folder with what is in it. What cannot be removed stays: no end fails for it."""
    with contextlib.suppress(OSError):
        path.unlink()
        return
    shutil.rmtree(path, ignore_errors=True)

"""Where a written program goes, and what may lie there already: only what this program wrote before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from analyzer.errors import UsageError
from analyzer.scratch import unfinished_file

_MARK = b"Written by trace-analyze"
_HEAD_BYTES = 4096  # the docstring of a written program stands at its beginning
STORED = (".pt", ".npz")  # inputs that are too large for the program, by framework


def is_own_program(path: Path) -> bool:
    """Whether ``--repro`` wrote a file; it may be replaced then."""
    with path.open("rb") as file:
        return _MARK in file.read(_HEAD_BYTES)


def check_free(path: Path) -> None:
    """Refuse a place where something of the user's would be lost.

    Raises:
        UsageError: The program, or the file of its inputs, would replace one that no such program wrote; or
            its name does not end in ``.py``, so that the two could have one name.
    """
    if path.suffix in STORED:
        raise UsageError(f"--repro {path}: a program is written; give it a name that ends in .py")
    if path.is_dir():
        raise UsageError(f"--repro {path}: is a folder; give the name of the program to write in it")
    if os.path.lexists(path) and not (path.is_file() and is_own_program(path)):
        raise UsageError(f"--repro {path}: is a file that this program did not write; give another")
    for ending in STORED:
        beside = path.with_suffix(ending)
        if os.path.lexists(beside) and not _loads(path, ending):
            raise UsageError(
                f"--repro {path}: {beside.name} lies beside it, where the inputs of the program can have to "
                "go; give another name"
            )


def _loads(program: Path, ending: str) -> bool:
    """Whether a program that we wrote reads the file beside it: that one is ours as well."""
    if not program.is_file() or not is_own_program(program):
        return False
    return f'Path(__file__).with_suffix("{ending}")'.encode() in program.read_bytes()


def place_program(made: Path, path: Path) -> None:
    """Put a program and its stored inputs where they were asked for, each under its name at once.

    Args:
        made: The program, its inputs beside it.
        path: Where it goes.

    Raises:
        UsageError: Something of the user's has come to lie there meanwhile.
        OSError: They cannot be written; what was there is as it was.
    """
    check_free(path)
    before = [path.with_suffix(ending) for ending in STORED if _loads(path, ending)]
    stored = [one for one in map(made.with_suffix, STORED) if one.exists()]
    for one in stored:
        _copy(one, path.with_suffix(one.suffix))
    _copy(made, path)
    for old in before:
        if old.suffix not in {one.suffix for one in stored}:
            old.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    with unfinished_file(target) as file:
        shutil.copyfile(source, file)
        shutil.copymode(source, file)

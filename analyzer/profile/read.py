"""Opens a profile of any known format, told by its content."""

from __future__ import annotations

from pathlib import Path

from analyzer.errors import InputError
from analyzer.profile.kineto import read_kineto
from analyzer.profile.model import Profile
from analyzer.profile.nsys import MAGIC, read_nsys


def read_profile(path: Path) -> Profile:
    """Read a Kineto / Chrome trace or an nsys SQLite export.

    Raises:
        InputError: The file is missing or neither of them.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise InputError(f"--profile {path}: cannot be read: {error.strerror}") from error
    return read_nsys(path) if magic == MAGIC else read_kineto(path)

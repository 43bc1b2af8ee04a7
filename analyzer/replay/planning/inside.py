"""Files of a folder that the user named, and of no other: a link in it may lead anywhere."""

from __future__ import annotations

from pathlib import Path


def is_inside(folder: Path, path: Path) -> bool:
    """Whether a path lies in a folder (or is it) once all links are followed."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a loop of links
        return False

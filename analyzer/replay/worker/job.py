"""What one child is to execute. The runner writes it, the worker reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Job(NamedTuple):
    """One attempt.

    ``plan``: file of the plan; ``journal``: file that gets the events. ``ops``: numbers of the plan, in the
    order in which they run. ``valid``: those of them whose inputs are made valid by construction (the
    control). ``device``: where all of it runs (null = as recorded; the cpu where that device is missing).
    ``custom_extensions``: packages of custom ops for MAX, libraries (``.so``) for torch. ``user_ops``: file
    of the user's functions. ``timing_runs``: launches of each op that can be repeated; the first is not
    counted in the time if there are more. ``seed`` of made floats.
    """

    plan: str
    journal: str
    ops: tuple[int, ...]
    valid: tuple[int, ...] = ()
    device: str | None = None
    custom_extensions: tuple[str, ...] = ()
    user_ops: str | None = None
    timing_runs: int = 1
    seed: int = 0


def dump_job(job: Job, path: Path) -> None:
    """Write a job for ``load_job``."""
    path.write_text(json.dumps(job._asdict(), indent=2) + "\n", encoding="utf-8")


def load_job(path: Path) -> Job:
    """Read a job; what is left out has its default.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no JSON.
        TypeError: A field is missing or has another name.
    """
    values = json.loads(path.read_text(encoding="utf-8"))
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Job(**{**values, **lists})

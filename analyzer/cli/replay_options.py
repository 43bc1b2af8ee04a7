"""Options of ``--replay``, and what they come to."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from analyzer.errors import ReplaySetupError, UsageError
from analyzer.replay.plan import read_plan
from analyzer.replay.repro.place import check_free

ReplayInputs = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH",
        help="Tensors for a replay: inputs saved by record, AOTInductor or FlashInfer dumps.",
    ),
]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="Replay this plan (as saved, or edited).")
]
SavePlan = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the plan of the op replay, then replay it.")
]
UserOps = Annotated[
    Path | None, typer.Option("--ops", metavar="MY_OPS.PY", help="Functions that execute ops of the log.")
]
CustomExtensions = Annotated[
    list[Path] | None,
    typer.Option(metavar="PATH", help="Custom ops: a MAX kernel package, a library of PyTorch ops."),
]
ReproFile = Annotated[
    Path | None,
    typer.Option("--repro", metavar="FILE", help="Write the confirmed op as a program that fails alike."),
]
Python = Annotated[
    str | None, typer.Option("--python", metavar="PATH", help="Interpreter with torch or max; default: ours.")
]
Device = Annotated[
    str | None, typer.Option(metavar="cpu|cuda:0", help="Where to replay ops; default: as in the log.")
]

MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory that a replay may hold, as in 64G, or none; default: most of what is free.",
    ),
]


_SIZE = re.compile(r"([0-9]{1,9})([KMGT]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_DEVICE = re.compile(r"cpu|(?:cuda|hip|xpu|mps|gpu)(?::[0-9]+)?")


def is_plan(path: Path) -> bool:
    """Whether a file is a plan, as ``--save-plan`` writes them; it may be replaced then."""
    try:
        read_plan(path)
    except ReplaySetupError:
        return False
    return True


# realpath() and not resolve(): that one raises where links are a loop and where a path is too long.


def spare_inputs(given: Iterable[str | Path], written: Iterable[Path | None]) -> None:
    """Refuse to write where something is read: the log of a crash is there once.

    Raises:
        UsageError: An output is one of the inputs.
    """
    read = {os.path.realpath(one) for one in given if str(one) != "-"}
    for path in written:
        if path is not None and os.path.realpath(path) in read:
            raise UsageError(f"{path}: is read by this call; write to another file")


def each_once(written: Iterable[Path | None]) -> None:
    """Refuse to write two outputs to one file: the second would replace the first.

    Raises:
        UsageError: A path is given twice.
    """
    seen = set[str]()
    for path in written:
        if path is None:
            continue
        if os.path.realpath(path) in seen:
            raise UsageError(f"{path}: is given for two outputs; write each to a file of its own")
        seen.add(os.path.realpath(path))


def parse_memory_limit(text: str | None) -> int | None:
    """``64G`` -> 64 000 000 000 bytes, ``none`` -> 0 (any number); null stays null (the default).

    Raises:
        UsageError: Something else.
    """
    if text is None or text.strip().lower() == "none":
        return None if text is None else 0
    found = _SIZE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise UsageError(f"--memory-limit {text!r}: give a size, as in 64G, or none")
    return int(found[1]) * _UNITS[found[2].upper()]


class ReplayWanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay is asked for. ``program``: what stood after ``--``. The rest is of an op replay."""

    program: tuple[str, ...]
    deadline_s: float
    quiet: bool
    inputs: tuple[Path, ...] = ()
    plan: Path | None = None
    save_plan: Path | None = None
    user_ops: Path | None = None
    custom_extensions: tuple[Path, ...] = ()
    repro: Path | None = None
    python: str = sys.executable
    device: str | None = None
    memory_limit_bytes: int | None = None

    def of_ops(self) -> list[str]:
        """The options given that only an op replay has."""
        given = {
            "--replay-inputs": self.inputs,
            "--plan": self.plan,
            "--save-plan": self.save_plan,
            "--ops": self.user_ops,
            "--custom-extensions": self.custom_extensions,
            "--repro": self.repro,
            "--python": self.python if self.python != sys.executable else None,
            "--device": self.device,
        }
        return [name for name, value in given.items() if value]

    def check(self, *, replay: bool) -> None:
        """Refuse a call that makes no sense.

        Raises:
            UsageError: A program or an option without ``--replay``, or both of them, a missing file, a device
                that is none.
        """
        if self.device is not None and _DEVICE.fullmatch(self.device) is None:
            raise UsageError(f"--device {self.device!r}: give cpu, or a device with its number, as in cuda:0")
        if self.program and not replay:
            raise UsageError("a program after -- is for --replay (or for trace-analyze record)")
        options = self.of_ops()
        if options and not replay:
            raise UsageError(f"{options[0]} is for --replay")
        if options and self.program:
            raise UsageError(
                f"{options[0]} is for replaying single ops; a program after -- runs whole: give one of them"
            )
        read = [
            ("--ops", self.user_ops),
            *(("--replay-inputs", one) for one in self.inputs),
            *(("--custom-extensions", one) for one in self.custom_extensions),
        ]
        for name, path in read:
            if path is not None and not path.exists():
                raise UsageError(f"{name} {path}: no such file")

    def spare_files(self) -> None:
        """Refuse to replace a file that this program did not write.

        Raises:
            UsageError: The program or the plan would replace one.
        """
        if self.repro is not None:
            check_free(self.repro)
        if self.save_plan is not None and self.save_plan.is_file() and not is_plan(self.save_plan):
            raise UsageError(f"--save-plan {self.save_plan}: is a file that is no plan; give another")

"""The last analysis of each working directory, kept in the user's state directory; nothing beside the log."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import platformdirs

from analyzer.errors import ReplaySetupError
from analyzer.pipeline import Options
from analyzer.schema import Result, Value
from analyzer.scratch import unfinished_file

_APPLICATION = "trace-analyze"


class LastAnalysis(Value):
    """What ``trace-analyze --replay`` alone goes on with. Paths are absolute; ``-`` stays.

    ``command``: the program of the last replay in this directory; empty = there was none. ``ir``, ``window``
    and ``process`` as the analysis was asked for.
    """

    cwd: str
    inputs: list[str]
    result: Result
    command: tuple[str, ...] = ()
    ir: tuple[str, ...] = ()
    window: tuple[int, int] | None = None
    process: str | None = None


def state_folder() -> Path:
    """The user's state directory for this program; it need not exist."""
    return platformdirs.user_state_path(_APPLICATION)


def replay_folder(cwd: Path) -> Path:
    """Holds a folder for each replay started in a directory (``run_folder``)."""
    return state_folder() / "replay" / _key(cwd)


def save_last(
    cwd: Path,
    inputs: Sequence[str],
    result: Result,
    command: Sequence[str] | None = None,
    options: Options | None = None,
) -> bool:
    """Keep an analysis. False = the state directory cannot be written, which harms nothing else.

    Args:
        cwd: The working directory.
        inputs: As given.
        result: The analysis.
        command: The replayed program; null = keep the one before.
        options: Of the analysis; null = the defaults.
    """
    if command is None:
        before = _read(cwd)
        command = before.command if before else ()
    options = options or Options()
    absolute = [path if path == "-" else str((cwd / path).absolute()) for path in inputs]
    last = LastAnalysis(
        cwd=str(cwd), inputs=absolute, result=result, command=tuple(command),
        ir=tuple(str((cwd / path).absolute()) for path in options.ir), window=options.window,
        process=options.process,
    )  # fmt: skip
    try:
        _write(_file(cwd), msgspec.json.encode(last))
    except (OSError, UnicodeEncodeError):  # JSON holds no file name that is not UTF-8
        return False
    return True


def load_last(cwd: Path) -> LastAnalysis:
    """The last analysis made in a directory.

    Raises:
        ReplaySetupError: There is none, or another version of this program wrote it.
    """
    last = _read(cwd)
    if last is None:
        raise ReplaySetupError(
            f"no analysis was made in {cwd} yet: give the log and the program that wrote it, as in: "
            "trace-analyze serve.log --replay -- python serve.py"
        )
    return last


def nothing_to_replay(inputs: Sequence[str], why: Sequence[str]) -> ReplaySetupError:
    """Says exactly what to give. ``why``: what keeps single ops from being executed."""
    log = inputs[0] if inputs else "serve.log"
    told = f" ({'; '.join(why)})" if why else ""
    return ReplaySetupError(
        f"nothing to replay: the log alone has no code and no tensors{told}. Give the program that wrote it: "
        f"trace-analyze {log} --replay -- python serve.py; or record a run with its inputs first: "
        "trace-analyze record --for torch -o serve.log -- python serve.py; or give dumped tensors "
        "(--replay-inputs PATH) or the shapes of a MAX graph (--ir PATH)"
    )


def _key(cwd: Path) -> str:
    return hashlib.sha256(os.fsencode(cwd.resolve())).hexdigest()[:20]


def _file(cwd: Path) -> Path:
    return state_folder() / "last" / f"{_key(cwd)}.json"


def _read(cwd: Path) -> LastAnalysis | None:
    try:
        return msgspec.json.decode(_file(cwd).read_bytes(), type=LastAnalysis)
    except (OSError, msgspec.MsgspecError):
        return None


def _write(path: Path, data: bytes) -> None:
    """Write beside, then rename: a reader never sees half a file, and a full disk leaves none behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished_file(path) as file:
        file.write_bytes(data)

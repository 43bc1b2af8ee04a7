"""Versions for the trailer: driver, CUDA, GPUs, and the packages of the *command's* Python.

Nothing is imported or initialised here: ``nvidia-smi`` and a bare Python answer. Both are asked in the
background when the command starts, because after a fault ``nvidia-smi`` can hang in the driver.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from analyzer.schema import Value

_LOOK_S = 0.05
ASK_TIMEOUT_S = 20.0  # nvidia-smi without persistence mode initialises each GPU: seconds on eight of them
_QUERY = "index,name,driver_version,memory.total"
_CUDA = re.compile(r"CUDA Version:\s*([0-9.]+)")
_PACKAGES = ("torch", "triton", "max", "modular", "vllm", "sglang")
_ASK_PYTHON = (
    "import importlib.metadata as m, json, sys\n"
    "found = {'python': sys.version.split()[0]}\n"
    f"for name in {_PACKAGES!r}:\n"
    "    try: found[name] = m.version(name)\n"
    "    except m.PackageNotFoundError: pass\n"
    "print(json.dumps(found))\n"
)


class Versions(Value):
    """``packages``: driver, cuda, python, and packages that are installed. ``gpus``: one mapping each."""

    packages: dict[str, str] = msgspec.field(default_factory=dict)
    gpus: list[dict[str, str]] = msgspec.field(default_factory=list)


class VersionsAsked:
    """Asks in the background; ``result`` gives what is known by then."""

    def __init__(self, command: Sequence[str]) -> None:
        self._packages: dict[str, str] = {}
        self._gpus: list[dict[str, str]] = []
        self._asking: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._ask, args=(list(command),), daemon=True)
        self._thread.start()

    def result(self, timeout_s: float, hurry: Callable[[], bool] = lambda: False) -> Versions:
        """The answers so far. A program that has not answered is ended.

        Args:
            timeout_s: How long to wait for those that are missing.
            hurry: Whether somebody wants us to end now.
        """
        end = time.monotonic() + timeout_s
        while self._thread.is_alive() and time.monotonic() < end and not hurry():
            self._thread.join(_LOOK_S)
        asking = self._asking
        if asking is not None:
            asking.kill()
        return Versions(packages=dict(self._packages), gpus=list(self._gpus))

    def _ask(self, command: list[str]) -> None:
        python = child_python(command)
        if python is not None:
            self._packages.update(_packages_of(self._output([python, "-I", "-c", _ASK_PYTHON])))
        if shutil.which("nvidia-smi") is None:
            return
        rows = self._output(["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"])
        for row in rows.splitlines():
            fields = [field.strip() for field in row.split(",")]
            if len(fields) == 4:
                index, name, driver, memory = fields
                self._gpus.append({"index": index, "name": name, "memory_mib": memory})
                self._packages["driver"] = driver
        cuda = _CUDA.search(self._output(["nvidia-smi"]))
        if cuda:
            self._packages["cuda"] = cuda[1]

    def _output(self, command: list[str]) -> str:
        """What a program prints; empty if it cannot be started, fails or takes too long."""
        try:
            with subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as child:
                self._asking = child
                try:
                    out, _ = child.communicate(timeout=ASK_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    child.kill()
                    return ""
                finally:
                    self._asking = None
                return out.decode(errors="replace") if child.returncode == 0 else ""
        except OSError:
            return ""


def child_python(command: Sequence[str]) -> str | None:
    """The Python that the command runs in: itself, or the first line of its script; null = not told."""
    for word in command:
        path = shutil.which(word)
        if path is None:
            continue
        if re.fullmatch(r"python[0-9.]*", Path(path).name):
            return path
        interpreter = _shebang(path)
        if interpreter is not None:
            return interpreter
        if Path(path).name not in {
            "env",
            "nice",
            "numactl",
            "compute-sanitizer",
            "timeout",
            "taskset",
        }:
            return None
    return None


def _shebang(path: str) -> str | None:
    try:
        with Path(path).open("rb") as file:
            first = file.readline(512)
    except OSError:
        return None
    if not first.startswith(b"#!") or b"python" not in first:
        return None
    words = first[2:].decode(errors="replace").split()
    return shutil.which(words[-1]) if words[0].endswith("/env") else words[0]


def _packages_of(text: str) -> dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return {str(name): str(version) for name, version in found.items()}

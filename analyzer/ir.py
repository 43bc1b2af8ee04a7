"""Operand types from ``ir-output-dir`` files (``--ir``): log records join to shapes (observed.md 18)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from analyzer.errors import InputError
from analyzer.grammar import GrammarError
from analyzer.parse.ir_file import IrKernel, IrModule, parse_ir
from analyzer.schema import TensorInfo

_ENDING = ".mojo"


class IrTypes(msgspec.Struct, frozen=True, kw_only=True):
    """``by_name``: operand types of op names that have the same types in all kernels of that name."""

    by_name: dict[str, tuple[TensorInfo, ...]]
    packages: tuple[str, ...]


def read_ir(paths: Sequence[Path]) -> IrTypes:
    """Read IR files, or all ``.mojo`` files of folders.

    Raises:
        InputError: A path is missing, or no path holds a ``.mojo`` file with fusion information.
    """
    kernels: list[IrKernel] = []
    packages: list[str] = []
    for path in paths:
        for file in _files(path):
            module = _parse(file)
            kernels.extend(module.kernels)
            packages.extend(module.packages)
    if paths and not kernels:
        raise InputError(f"--ir {paths[0]}: no kernel with fusion information; give the <graph>.mojo file")
    return IrTypes(by_name=_by_name(kernels), packages=tuple(dict.fromkeys(packages)))


def _parse(file: Path) -> IrModule:
    try:
        return parse_ir(file.read_text(encoding="utf-8", errors="replace"))
    except GrammarError as error:
        raise InputError(f"--ir {file}: not a <graph>.mojo file of ir-output-dir: {error}") from error


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(path.glob(f"*{_ENDING}"))
        if not found:
            raise InputError(f"--ir {path}: no {_ENDING} file in this folder")
        return found
    if not path.exists():
        raise InputError(f"--ir {path}: no such file")
    return [path]


def _by_name(kernels: Sequence[IrKernel]) -> dict[str, tuple[TensorInfo, ...]]:
    """Names whose kernels all have the same operand types; for others the name alone cannot tell."""
    found: dict[str, list[tuple[TensorInfo, ...]]] = {}
    for kernel in kernels:
        found.setdefault(kernel.name, []).append(kernel.tensors)
    return {name: types[0] for name, types in found.items() if all(one == types[0] for one in types)}

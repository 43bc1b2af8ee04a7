"""Inputs that ``record`` saved beside its log: one ``.safetensors`` file an op, read without its package."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from analyzer.ingest.reader import LineReader
from analyzer.replay.plan import PlanTensor
from analyzer.replay.planning.inside import is_inside

FOLDER_SUFFIX = ".inputs"
ENDING = ".safetensors"
DTYPES: Mapping[str, str] = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32",
    "F64": "float64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "C64": "complex64",
}  # fmt: skip
_U64 = struct.Struct("<Q")
_DIGITS = 20  # of a 64-bit integer
_HEADER_LIMIT = 100 << 20  # as the format's own reader has it
_BLOCK = "[RECORD] OPS "  # the line before the ops of one process


class SavedTensor(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says about one tensor.

    ``file`` null = its values were not kept; ``key`` null = the file is this one tensor. ``stride`` null =
    contiguous.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str | None = None
    low: int | None = None
    high: int | None = None
    stride: tuple[int, ...] | None = None
    file: str | None = None
    key: str | None = None


def read_safetensors(path: Path) -> tuple[dict[str, SavedTensor], dict[str, str]]:
    """Tensors of a file by name, and its metadata. Both empty = it cannot be read as one."""
    try:
        with path.open("rb") as file:
            (length,) = _U64.unpack(file.read(_U64.size))
            header = json.loads(file.read(length)) if length <= _HEADER_LIMIT else {}
    except (OSError, ValueError, RecursionError, struct.error):
        return {}, {}
    if not isinstance(header, dict):
        return {}, {}
    metadata = header.pop("__metadata__", None) or {}
    found = {
        name: SavedTensor(
            shape=tuple(entry["shape"]),
            dtype=DTYPES.get(str(entry.get("dtype")), str(entry.get("dtype")).lower()),
            file=str(path.resolve()),
            key=name,
        )
        for name, entry in header.items()
        if isinstance(entry, dict) and _is_shape(entry.get("shape"))
    }
    if not isinstance(metadata, dict):
        return found, {}
    return found, {str(key): str(value) for key, value in metadata.items()}


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, int) and 0 <= one < 1 << 63 for one in value)


class Captures:
    """The files of one or several recordings."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._files: dict[int, dict[int, Path]] = defaultdict(dict)  # op id -> pid -> file
        for folder in folders:
            for path in sorted(folder.glob(f"*{ENDING}")):
                pid, _, ident = path.name.removesuffix(ENDING).rpartition("-")
                op, process = read_whole(ident), read_whole(pid)
                if op is not None and process is not None and is_inside(folder, path):
                    self._files[op][process] = path

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._files)

    def inputs(self, name: str, ident: int | None, pid: int | None) -> dict[str, SavedTensor]:
        """Saved inputs of an op by argument name; empty where there are none, or another op's.

        Args:
            name: Of the op; a file of another op is of another run.
            ident: Its id.
            pid: Its process; null = not known: then only one process may have saved an op of that id.
        """
        by_pid = self._files.get(ident, {}) if ident is not None else {}
        path = by_pid.get(pid) if pid is not None else next(iter(by_pid.values()), None)
        if path is None or (pid is None and len(by_pid) > 1):
            return {}
        tensors, metadata = read_safetensors(path)
        if metadata.get("op") != name:
            return {}
        names = [key.removesuffix(".dtype") for key in metadata if key.endswith(".dtype")]
        return {one: _saved(one, tensors.get(one), metadata) for one in names}


def _saved(name: str, stored: SavedTensor | None, metadata: Mapping[str, str]) -> SavedTensor:
    sizes = map(read_whole, metadata.get(f"{name}.shape", "").split("x"))
    return SavedTensor(
        shape=tuple(size for size in sizes if size is not None),
        dtype=metadata[f"{name}.dtype"],
        device=metadata.get(f"{name}.device"),
        low=read_whole(metadata.get(f"{name}.min")),
        high=read_whole(metadata.get(f"{name}.max")),
        file=stored.file if stored else None,
        key=stored.key if stored else None,
    )


def read_whole(text: str | None) -> int | None:
    """An integer that JSON can hold, null = the text is none."""
    digits = (text or "").removeprefix("-")
    if text is None or not digits.isascii() or not digits.isdecimal() or len(digits) > _DIGITS:
        return None
    return whole if -(1 << 63) <= (whole := int(text)) < 1 << 64 else None


def with_saved(tensor: PlanTensor, saved: SavedTensor | None) -> PlanTensor:
    """The tensor with its saved values, else their range. One of another shape is not this tensor."""
    if saved is None or (saved.shape, saved.dtype) != (tensor.shape, tensor.dtype):
        return tensor
    told = msgspec.structs.replace(
        tensor,
        device=saved.device or tensor.device,
        low=tensor.low if saved.low is None else saved.low,
        high=tensor.high if saved.high is None else saved.high,
    )
    if saved.file is not None:
        return msgspec.structs.replace(told, fidelity="recorded", file=saved.file, key=saved.key)
    if told.low is not None and told.high is not None:
        return msgspec.structs.replace(told, fidelity="statistics")
    return told


def folder_beside(log: Path) -> Path | None:
    """The folder that ``record`` made for this log, as long as both have their names."""
    plain = log.with_name(log.name.removesuffix(".zst").removesuffix(".gz"))
    for path in (log, plain):
        folder = path.with_name(path.name + FOLDER_SUFFIX)
        if folder.is_dir():
            return folder
    return None


def pids_of_blocks(reader: LineReader) -> list[tuple[int, int]]:
    """Lines at which the ops of a process begin, with its pid, in order."""
    found = []
    for line, text in reader.matching([_BLOCK]).select("line", "text").iter_rows():
        pid = text.partition(" pid=")[2].partition(" ")[0]
        if text.startswith(_BLOCK) and pid.isdecimal():
            found.append((line, int(pid)))
    return found


def pid_at(blocks: Sequence[tuple[int, int]], line: int) -> int | None:
    """The process whose ops stand at a line, null = the log does not say."""
    return next((pid for first, pid in reversed(blocks) if first < line), None)

"""Recorded values read back: ``.safetensors`` by its header, ``.pt`` through torch."""

from __future__ import annotations

import ctypes
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

_U64 = struct.Struct("<Q")
_WORDS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}


def read_stored(path: Path, key: str | None, dtype: str) -> bytes:
    """The elements of one tensor, row by row.

    Args:
        path: By its ending: ``.safetensors``, else what ``torch.save`` wrote.
        key: Name inside; null = the file holds one tensor.
        dtype: What the plan says that it is.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no such file, or the tensor in it is of another type.
        KeyError: No tensor of that name is in it.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no file")
    found, data = _safetensors(path, key) if path.suffix == ".safetensors" else _saved(path, key)
    if found != dtype:
        raise ValueError(f"{path}: the plan says {dtype}, the file holds {found}")
    return data


def _safetensors(path: Path, key: str | None) -> tuple[str, bytes]:
    with path.open("rb") as file:
        start = file.read(_U64.size)
        if len(start) < _U64.size:
            raise ValueError(f"{path}: too short for a safetensors file")
        (length,) = _U64.unpack(start)
        header = json.loads(file.read(min(length, path.stat().st_size)))
        header.pop("__metadata__", None)
        entry = header[_only(header, key, path)]
        first, last = entry["data_offsets"]
        if not 0 <= first <= last <= path.stat().st_size:
            raise ValueError(f"{path}: its places are not in it")
        file.seek(_U64.size + length + first)
        data = file.read(last - first)
    if len(data) != last - first:
        raise ValueError(f"{path}: cut short")
    return _WORDS.get(entry["dtype"], entry["dtype"]), data


def _only(entries: Any, key: str | None, path: Path) -> Any:
    if key is not None:
        return key
    if len(entries) != 1:
        raise ValueError(f"{path}: holds {len(entries)} tensors, and the plan names none")
    return next(iter(entries))


def _saved(path: Path, key: str | None) -> tuple[str, bytes]:
    import torch

    _check_archive(path)
    value = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(value, (dict, list, tuple)):
        place: Any = _only(value, key, path) if isinstance(value, dict) else int(key or 0)
        value = value[place]
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{path}: holds no tensor but a {type(value).__name__}")  # noqa: TRY004  (its content)
    whole = value.detach().contiguous()
    size = whole.numel() * whole.element_size()
    return str(whole.dtype).replace("torch.", ""), ctypes.string_at(whole.data_ptr(), size) if size else b""


def _check_archive(path: Path) -> None:
    """``torch.save`` packs nothing: a packed part, or parts that share bytes, would swell without an end.

    Raises:
        ValueError: It is no file of ``torch.save``.
    """
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: torch.save did not write it")
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: {error}") from error
    whole = sum(one.file_size for one in parts)
    if any(one.compress_type != zipfile.ZIP_STORED for one in parts) or whole > path.stat().st_size:
        raise ValueError(f"{path}: torch.save did not write it: it would become {whole} bytes")

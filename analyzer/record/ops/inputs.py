"""Saved inputs of an op: integer and boolean tensors, which are what goes out of range.

One ``.safetensors`` file an op (u64 length of the header, JSON header, raw little-endian values), which every
reader of that format loads; here without its package, as this runs in the recorded program. Tensors are named
by the op's own argument names (``index``; ``indices.0`` in a list). ``__metadata__`` holds ``op`` and, for
each argument, ``<name>.shape``, ``.dtype``, ``.device``; ``.min`` and ``.max`` where the values were read and
there are any; ``.from``, the id of the op that wrote it last, where that was logged. A tensor above the limit
has its metadata only: its values are not in the file.
"""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

_U64 = struct.Struct("<Q")
CODES = {
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "bool": "BOOL",
}


class SavedInput(NamedTuple):
    """One argument. No ``data`` = the values were not kept; ``low`` null = not read, or there are none.

    ``copied``: where a device will have put them (``values.Copied``).
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    low: int | None
    high: int | None
    data: bytes
    writer: int | None = None
    copied: str | None = None


def pack_inputs(op: str, inputs: list[SavedInput]) -> bytes:
    """The inputs of one op as the bytes of a ``.safetensors`` file."""
    metadata = {"op": op}
    header: dict[str, object] = {"__metadata__": metadata}
    body = []
    offset = 0
    for one in inputs:
        metadata[f"{one.name}.shape"] = "x".join(map(str, one.shape))
        metadata[f"{one.name}.dtype"] = one.dtype
        metadata[f"{one.name}.device"] = one.device
        if one.low is not None and one.high is not None:
            metadata[f"{one.name}.min"] = str(one.low)
            metadata[f"{one.name}.max"] = str(one.high)
        if one.writer is not None:
            metadata[f"{one.name}.from"] = str(one.writer)
        if one.copied is not None:
            metadata[f"{one.name}.copied"] = one.copied
        if one.data:
            end = offset + len(one.data)
            header[one.name] = {"dtype": CODES[one.dtype], "shape": one.shape, "data_offsets": [offset, end]}
            body.append(one.data)
            offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format wants the values aligned
    return b"".join([_U64.pack(len(text)), text, *body])


def unpack_header(blob: bytes) -> dict[str, dict[str, object]]:
    """The JSON header of what ``pack_inputs`` made."""
    (length,) = _U64.unpack_from(blob)
    header: dict[str, dict[str, object]] = json.loads(blob[_U64.size : _U64.size + length])
    return header


def evidence(blob: bytes) -> str:
    """``;index.min=0;index.max=1000;index.from=40``: ranges and writers, as details of the closing line."""
    metadata = unpack_header(blob)["__metadata__"]
    return "".join(
        f";{key}={value}" for key, value in metadata.items() if key.endswith((".min", ".max", ".from"))
    )


def file_name(ident: int, prefix: str = "") -> str:
    """Name of the file of one op."""
    return f"{prefix}{ident}.safetensors"

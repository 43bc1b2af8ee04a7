"""Saved inputs whose values the device copied into the file of marks: filled in when a ring is read."""

from __future__ import annotations

import struct

import msgspec

from analyzer.record.ops.inputs import CODES, SavedInput, pack_inputs, unpack_header
from analyzer.record.ops.marks_file import Marks

_FORMS = {
    "int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint8": "B", "uint16": "H", "uint32": "I",
    "uint64": "Q", "bool": "?",
}  # fmt: skip
COPIED = ".copied"
Header = dict[str, dict[str, object]]


def with_copied(blob: bytes, marks: Marks | None) -> bytes:
    """The inputs of an op with the values that had reached the file; those that had not stay unknown."""
    header = unpack_header(blob)
    metadata = {key: str(value) for key, value in header["__metadata__"].items()}
    names = [key.removesuffix(COPIED) for key in metadata if key.endswith(COPIED)]
    if not names:
        return blob
    every = [key.removesuffix(".dtype") for key in metadata if key.endswith(".dtype")]
    inputs = [_input(blob, header, metadata, name, marks) for name in every]
    return pack_inputs(metadata["op"], inputs)


def _input(
    blob: bytes,
    header: Header,
    metadata: dict[str, str],
    name: str,
    marks: Marks | None,
) -> SavedInput:
    shape = tuple(int(one) for one in metadata[f"{name}.shape"].split("x") if one)
    dtype, writer = metadata[f"{name}.dtype"], metadata.get(f"{name}.from")
    data, low, high = _kept(blob, header, name), metadata.get(f"{name}.min"), metadata.get(f"{name}.max")
    found = SavedInput(
        name=name,
        shape=shape,
        dtype=dtype,
        device=metadata[f"{name}.device"],
        low=None if low is None else int(low),
        high=None if high is None else int(high),
        data=data,
        writer=None if writer is None else int(writer),
    )
    told = metadata.get(name + COPIED)
    if told is None or marks is None:
        return found
    place, size, whole, stream, number = (int(one) for one in told.split(","))
    values = marks.values(place, size) if marks.is_done(stream, number) else None
    if values is None or len(values) < size:
        return found
    numbers = struct.unpack(f"<{size // struct.calcsize(_FORMS[dtype])}{_FORMS[dtype]}", values)
    whole_data = values if whole and dtype in CODES else b""
    return found._replace(data=whole_data, low=int(min(numbers)), high=int(max(numbers)))


def _kept(blob: bytes, header: Header, name: str) -> bytes:
    """Values that stand in the file of inputs already."""
    own = header.get(name)
    if own is None:
        return b""
    (length,) = struct.unpack_from("<Q", blob)
    begin, end = msgspec.convert(own["data_offsets"], tuple[int, int])
    start = 8 + length
    return blob[start + begin : start + end]

"""Element types as bytes, without torch or numpy: both frameworks take a buffer."""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import Any

from analyzer.replay.executors.call import CannotRunError

INTEGERS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
}
_FLOATS = {"float16": "e", "float32": "f", "float64": "d"}
_COMPLEX = {"complex64": "f", "complex128": "d"}
# Bits of exponent and mantissa, bias; the order of the bits is that of the name (OCP 8-bit formats, and the
# ``fnuz`` kind of AMD).
_FLOAT8 = {
    "float8_e4m3fn": (4, 3, 7),
    "float8_e5m2": (5, 2, 15),
    "float8_e4m3fnuz": (4, 3, 8),
    "float8_e5m2fnuz": (5, 2, 16),
    "float8_e8m0fnu": (8, 0, 127),
}
_SIZES = {"b": 1, "B": 1, "h": 2, "H": 2, "e": 2, "i": 4, "I": 4, "f": 4, "q": 8, "Q": 8, "d": 8}


def size_bytes(dtype: str) -> int:
    """Bytes of one element.

    Raises:
        CannotRunError: Not a type that is made here.
    """
    if dtype in INTEGERS:
        return _SIZES[INTEGERS[dtype]]
    if dtype in _FLOATS:
        return _SIZES[_FLOATS[dtype]]
    if dtype in _COMPLEX:
        return 2 * _SIZES[_COMPLEX[dtype]]
    if dtype == "bfloat16":
        return 2
    if dtype == "bool" or dtype in _FLOAT8:
        return 1
    raise CannotRunError(f"tensors of type {dtype} cannot be made")


def encode(dtype: str, values: Sequence[Any]) -> bytes:
    """Values as little-endian elements. A float may be a text (``nan``), as JSON has no word for it.

    Raises:
        CannotRunError: Not a type that is made here.
        OverflowError: An integer does not fit.
        ValueError: A text is no number.
    """
    size_bytes(dtype)
    if dtype == "bool":
        return bytes(bool(value) for value in values)
    if dtype in INTEGERS:
        return struct.pack(f"<{len(values)}{INTEGERS[dtype]}", *(int(value) for value in values))
    if dtype in _COMPLEX:
        parts = [part for value in map(complex, values) for part in (value.real, value.imag)]
        return struct.pack(f"<{len(parts)}{_COMPLEX[dtype]}", *parts)
    floats = [float(value) for value in values]
    if dtype in _FLOATS:
        return b"".join(_packed(_FLOATS[dtype], value) for value in floats)
    if dtype == "bfloat16":
        return b"".join(_bfloat16(value) for value in floats)
    return bytes(_float8(dtype, value) for value in floats)


def _packed(code: str, value: float) -> bytes:
    try:
        return struct.pack(f"<{code}", value)
    except OverflowError:  # larger than the type: infinite in it
        return struct.pack(f"<{code}", math.copysign(math.inf, value))


def _bfloat16(value: float) -> bytes:
    """The upper half of a float32, rounded to even."""
    bits = int.from_bytes(_packed("f", value), "little")
    if math.isfinite(value):
        bits = min(bits + 0x7FFF + (bits >> 16 & 1), 0xFFFFFFFF)
    return (bits >> 16).to_bytes(2, "little")


@cache
def _positive_float8(dtype: str) -> tuple[float, ...]:
    """The finite positive values by their code, up to what every variant holds."""
    exponent_bits, mantissa_bits, bias = _FLOAT8[dtype]
    if not mantissa_bits:
        return tuple(2.0 ** (code - bias) for code in range(255))
    found = []
    for code in range((1 << exponent_bits + mantissa_bits) - (1 << mantissa_bits)):
        exponent, mantissa = code >> mantissa_bits, code & (1 << mantissa_bits) - 1
        whole = 1 if exponent else 0
        found.append((whole + mantissa / (1 << mantissa_bits)) * 2.0 ** (max(exponent, 1) - bias))
    return tuple(found)


def _float8(dtype: str, value: float) -> int:
    """The nearest one not below; too large a value is the largest, not a number is its code."""
    table = _positive_float8(dtype)
    if math.isnan(value):
        return 0x80 if dtype.endswith("fnuz") else 0xFF if dtype.endswith("fnu") else 0x7F
    code = min(bisect_left(table, abs(value)), len(table) - 1)
    signed = value < 0 and code and not dtype.endswith("e8m0fnu")
    return code | 0x80 if signed else code


def decode_integers(dtype: str, data: bytes) -> list[int]:
    """The integers of a buffer."""
    return [value for (value,) in struct.iter_unpack(f"<{INTEGERS[dtype]}", data)]


def without_special_values(dtype: str, data: bytes) -> bytes:
    """The floats with infinities and what is not a number as zero. Types of 8 bits stay as they are."""
    layout = {"float64": ("Q", 0x7FF << 52), "float32": ("I", 0xFF << 23), "float16": ("H", 0x1F << 10)}
    code, exponent = {**layout, "bfloat16": ("H", 0xFF << 7)}.get(dtype, ("", 0))
    if not code:
        return data
    elements = array(code)
    elements.frombytes(data)
    special = [place for place, bits in enumerate(elements) if bits & exponent == exponent]
    for place in special:
        elements[place] = 0
    return elements.tobytes() if special else data

"""Tensors as AOTInductor's value printer shows them: labels and values (observed.md 29, 33, 34)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from analyzer.grammar import GrammarError, Reader, first_child, token_text
from analyzer.model import PrintedTensor
from analyzer.numbers import need_integer, need_real, printed_value

MAX_BODY = 320  # lines: 64 values, each in a section of its own with head and scale, and twelve labels
_DISTINCT_LINES = 1 << 14
# c10's names of element types; half and bfloat16 have had two spellings.
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
}
_CPP_TYPE = re.compile(r"^\[ (CPU|CUDA|XPU|MPS|HIP)([A-Za-z0-9_]+)Type\{")
_CPP_TYPES = {"Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8"}
_VALUE = re.compile(r"-?(?:nan|inf|[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]+)?)")
_SCALE = re.compile(r"^ *([0-9.]+(?:e[-+]?[0-9]+)?) \*\s*(.*)$")
_SECTION = re.compile(r"^\([0-9.,]+\) =$")
_COLUMNS = re.compile(
    r"^ ?Columns [0-9]+ (?:to|and) [0-9]+"
)  # a wide row is broken; its first part follows at once
_PYTHON_TENSOR = "tensor("
_PYTHON_OPTIONS = re.compile(r",\s++(?:device|dtype|requires_grad|size|grad_fn)=")
_PYTHON_DTYPE = re.compile(r"dtype=torch\.([a-z0-9_]+)")
_WORDS = {"True": 1.0, "False": 0.0}
_INTEGERS = ("int", "uint")


def is_integer(dtype: str | None) -> bool:
    """Whether a dtype can hold indices. Null (not printed) cannot be told."""
    return dtype is not None and dtype.startswith(_INTEGERS)


def is_floating(dtype: str | None) -> bool:
    """Whether a dtype can hold NaN."""
    return dtype is not None and dtype.startswith(("float", "bfloat"))


def read_tensor(name: str, line: int, body: Sequence[str]) -> PrintedTensor:
    """Read one tensor.

    Args:
        name: Argument of the header.
        line: Its line.
        body: Lines below the header, to the end of this tensor or beyond ``MAX_BODY``; another writer's lines
            in between are passed over.
    """
    labels: dict[str, Any] = {}
    values: list[str] = []
    for text in body:
        told = _read_label(text.rstrip())
        if told is not None and told[0] in labels:
            break  # the next tensor
        if told is not None:
            labels.setdefault(*told)
        elif not labels:
            values.append(text.rstrip())
    fields = {key: value for key, value in labels.items() if value is not None}
    try:
        numbers, dtype = _read_values(values, fields.get("elements"))
    except GrammarError:  # more digits than any value has: another writer broke into it
        numbers, dtype = None, None
    fields.setdefault("dtype", dtype)
    return PrintedTensor(name=name, line=line, values=numbers, **fields)


@lru_cache(maxsize=_DISTINCT_LINES)
def _read_label(text: str) -> tuple[str, Any] | None:
    if ":" not in text[:20]:
        return None
    try:
        return _LABELS.read(text)
    except GrammarError:
        return None


def _number(children: list[Any]) -> float | None:
    text = token_text(children[0])
    return None if text[:1] == "(" or text[-1:] == "j" else printed_value(text)


def _dtype(children: list[Any]) -> tuple[str, str]:
    text = token_text(children[0]).strip()
    return "dtype", _DTYPES.get(text, text.removeprefix("torch."))


def _dims(children: list[Any]) -> tuple[int, ...]:
    return tuple(need_integer(child) for child in children)


_LABELS = Reader[tuple[str, Any]](
    "printed_tensor",
    {
        "start": first_child,
        "elements": lambda children: ("elements", need_integer(children[0])),
        "dtype": _dtype,
        "no_dtype": lambda _: ("mean_again", None),
        "mean": lambda children: ("mean", _number(children)),
        "least": lambda children: ("min", _number(children)),
        "most": lambda children: ("max", _number(children)),
        "device": lambda children: ("device", token_text(children[0])),
        "size": lambda children: ("shape", _dims(children)),
        "stride": lambda children: ("stride", _dims(children)),
    },
)


def _read_values(lines: Sequence[str], elements: int | None) -> tuple[tuple[float, ...] | None, str | None]:
    """Values and dtype of what stands between header and labels; null where it is not all there."""
    text = "\n".join(lines)
    inside = _python_tensor(text)
    if inside is not None:
        numbers = [_WORDS[word] if word in _WORDS else printed_value(word) for word in _python_words(inside)]
        dtype = _python_dtype(text, inside)
    else:
        numbers, dtype = _cpp_values(lines)
    if elements is None or len(numbers) != elements:
        return None, dtype
    return tuple(numbers), dtype


def _python_tensor(text: str) -> str | None:
    """What stands in ``tensor(...)`` before its options; null = it is not that, or not whole."""
    _, opened, rest = text.partition(_PYTHON_TENSOR)
    body = rest.removesuffix("\n")
    if not (opened and body.endswith(")")):
        return None
    options = _PYTHON_OPTIONS.search(body)
    return body[: options.start()] if options else body[:-1]


def _python_words(text: str) -> list[str]:
    return re.findall(rf"True|False|{_VALUE.pattern}", text)


def _python_dtype(text: str, numbers: str) -> str | None:
    """PyTorch leaves out the default dtypes: int64, float32, bool."""
    told = _PYTHON_DTYPE.search(text)
    if told:
        return told[1]
    words = _python_words(numbers)
    if not words:
        return None
    if words[0] in _WORDS:
        return "bool"
    return "float32" if any("." in word or word[-1] in "nf" for word in words) else "int64"


def _cpp_values(lines: Sequence[str]) -> tuple[list[float], str | None]:
    """Rows of numbers, in sections that can have a scale of their own (``1e-31 *``)."""
    numbers: list[float] = []
    scale = 1.0
    for line in lines:
        line = _COLUMNS.sub("", line)  # noqa: PLW2901 (the rest of the line is what is read)
        closing = _CPP_TYPE.match(line)
        if closing:
            return numbers, _CPP_TYPES.get(closing[2])
        if not line or _SECTION.match(line):
            scale = 1.0
            continue
        scaled = _SCALE.match(line)
        if scaled:
            scale = need_real(scaled[1])
        words = (scaled[2] if scaled else line).split()
        if not all(_VALUE.fullmatch(word) for word in words):
            return [], None
        numbers.extend(printed_value(word) * scale for word in words)
    return numbers, None

"""Inputs of a written program: inline where they are small or can be made again, else in a file beside it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

INLINE = 4096  # elements of an integer or boolean input
INLINE_FLOATS = 64
_PER_LINE = 16
_INDENT = "    "

# What the replay made its inputs with (analyzer/replay/worker/inputs.py), without that package.
_REPEATED = '''
def repeated(values, shape, dtype, device):
    """The values over and over, row by row, until the shape is full."""
    count = math.prod(shape)
    flat = torch.tensor(values or [0], dtype=torch.float64).to(dtype)
    return flat.repeat(count // max(len(values), 1) + 1)[:count].reshape(shape).to(device)
'''
_MADE = '''

def made(shape, dtype, device, seed):
    """Floats between -0.5 and 0.5, the same at each run."""
    source = random.Random(seed)
    values = [0.5 * source.uniform(-1, 1) for _ in range(min(math.prod(shape), 4099))]
    return repeated(values, shape, dtype, device)
'''
_BETWEEN = '''

def between(low, high, shape, dtype, device):
    """Floats in even steps between two recorded ends."""
    count = min(math.prod(shape), 4099)
    step = (high - low) / max(count - 1, 1)
    return repeated([low + step * place for place in range(count)], shape, dtype, device)
'''


def functions_for(body: str) -> str:
    """The functions that a program calls."""
    parts = [text for name, text in (("made", _MADE), ("between", _BETWEEN)) if f"= {name}(" in body]
    return "".join([_REPEATED, *parts]) if parts else ""


def all_functions() -> str:
    """Those that any program may call."""
    return _REPEATED + _MADE + _BETWEEN


class Leaf(NamedTuple):
    """Where the values of an input came from; see the plan."""

    kind: str
    salt: str = ""
    low: Optional[float] = None  # noqa: UP045  (evaluated on the program's Python, 3.9 or newer)
    high: Optional[float] = None  # noqa: UP045
    mean: Optional[float] = None  # noqa: UP045


class Stored(NamedTuple):
    """How an input is written: ``text`` is an expression; null = it goes to the file. ``note``: a comment."""

    text: Optional[str]  # noqa: UP045
    note: str


def write_tensor(torch: Any, value: Any, leaf: Leaf, functions: dict[str, Any]) -> Stored:
    """The expression that makes an input again, checked by evaluating it.

    Args:
        torch: The module.
        value: The tensor.
        leaf: Where its values came from.
        functions: Names that the program has: ``torch`` and ``all_functions``.
    """
    for text in _expressions(value, leaf):
        if _is_same(torch, eval(text, dict(functions)), value):  # noqa: S307  (a text that we wrote)
            return Stored(text, _NOTES.get(leaf.kind, leaf.kind))
    return Stored(None, _NOTES.get(leaf.kind, leaf.kind))


_NOTES = {
    "recorded": "recorded values",
    "statistics": "made within the recorded range",
    "made": "made, the values of the crash are not known",
    "constant": "made by the replay",
}


def _expressions(value: Any, leaf: Leaf) -> list[str]:
    dtype, device, shape = str(value.dtype), ascii(str(value.device)), tuple(value.shape)
    found: list[str] = []
    if value.is_floating_point() and not value.is_contiguous():
        return found
    if value.is_floating_point() and leaf.kind == "made":
        found.append(f"made({shape}, {dtype}, {device}, {leaf.salt!a})")
    ends = [one for one in (leaf.low, leaf.high, leaf.mean) if one is not None]
    if value.is_floating_point() and leaf.kind == "statistics" and ends:
        low = leaf.low if leaf.low is not None else min(ends)
        high = leaf.high if leaf.high is not None else max(ends)
        ends_text = f"{_element(float(low))}, {_element(float(high))}"
        found.append(f"between({ends_text}, {shape}, {dtype}, {device})")
    if value.numel() <= (INLINE_FLOATS if value.is_floating_point() else INLINE) and not value.is_complex():
        elements = [_element(one) for one in value.detach().cpu().flatten().tolist()]
        shaped = f".reshape({shape})" if len(shape) != 1 else ""
        found.append(f"torch.tensor({_listed(elements)}, dtype={dtype}, device={device}){shaped}")
    return found


def _element(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return ascii(value)


def _listed(elements: list[str]) -> str:
    """On one line where it is short."""
    if len(elements) <= _PER_LINE:
        return f"[{', '.join(elements)}]"
    lines = [", ".join(elements[start : start + _PER_LINE]) for start in range(0, len(elements), _PER_LINE)]
    return "[\n" + "".join(f"{_INDENT}{line},\n" for line in lines) + "]"


def _is_same(torch: Any, made: Any, value: Any) -> bool:
    """Bit by bit, and laid out alike."""
    if made.shape != value.shape or made.dtype != value.dtype or made.stride() != value.stride():
        return False
    if made.device != value.device:
        return False
    if not value.numel():
        return True
    return bool(torch.equal(*(one.contiguous().reshape(-1).view(torch.uint8) for one in (made, value))))

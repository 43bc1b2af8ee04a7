"""Details of MAX op records: attributes, source frames, fusion count, device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from analyzer.grammar import GrammarError, Reader, first_child, token_text, token_type
from analyzer.model import OpDetail
from analyzer.numbers import MAX_EXTENT, natural, need_integer
from analyzer.parse.tensor_type import parse_shape_text
from analyzer.schema import SourceFrame, TensorInfo, Value

# MAX names the operands of a matmul A, B and C = A x B (formats.md 3.10).
OUTPUT_KEYS = frozenset({"C", "out", "output"})
SHAPE_KEY = "shape"  # "shape=8192" is a tensor of rank 1, "vector_width=16" is not
CLOSING_STARTS = (";", "[fused from ")
DISTINCT_LINES = 1 << 16  # frames recur in every record; a server has some thousand

Stacks = tuple[tuple[SourceFrame, ...], ...]


def parse_op_detail(head: str, body: Sequence[str]) -> OpDetail:
    """Read the detail of one op record.

    Args:
        head: Text after ``[id=N]`` on the head line; may be empty or blank.
        body: Lines after the head line, envelope taken off; more lines than the record has may be
            given. Lines that are no part of it are skipped (``body_lines`` tells which are).

    Returns:
        Attributes in order without ``target``; ``device`` from ``target`` (null = not printed, as in
        a log cut before the closing line); ``fused_from`` null where no count is printed; tensors of
        shape-like attributes. One stack of frames for each fused op, outermost frame first; if the
        frames do not split into as many stacks as the count says, those found are kept.

    Raises:
        GrammarError: ``head`` is no list of attributes.
    """
    first = _read_details(head.strip())
    lines = [body[index] for index in body_lines(body)]
    parts = [_read_line(line) for line in lines]
    closing = next((part for part in parts if isinstance(part, OpDetail)), None)
    frames = [part for part in parts if isinstance(part, SourceFrame)]
    last = closing or OpDetail()
    # A closing line without a count closes one stack, even of a recursive function.
    one_stack = closing is not None and closing.fused_from is None
    return OpDetail(
        attributes=first.attributes + last.attributes,
        device=last.device or first.device,
        fused_from=first.fused_from if last.fused_from is None else last.fused_from,
        stacks=_one(frames) if one_stack else split_stacks(frames),
        tensors=first.tensors + last.tensors,
    )


def body_lines(body: Sequence[str]) -> tuple[int, ...]:
    """Indices of the lines that belong to the record: its frames and its closing line.

    Another writer can print in between (observed.md 6), so these need not be adjacent. Without a
    closing line (the log was cut, or ``body`` is too short) all frames count.
    """
    found = []
    for index, line in enumerate(body):
        part = _read_line(line)
        if part is not None:
            found.append(index)
        if isinstance(part, OpDetail):
            break
    return tuple(found)


def split_stacks(frames: Sequence[SourceFrame]) -> Stacks:
    """Cut frames that follow one another into stacks: a new one starts where the first frame recurs.

    The log prints the stacks of a fused op without a separator (observed.md 4).
    """
    starts = [index for index, frame in enumerate(frames) if frame == frames[0]]
    return tuple(tuple(frames[begin:end]) for begin, end in pairwise([*starts, len(frames)]))


def _one(frames: Sequence[SourceFrame]) -> Stacks:
    return (tuple(frames),) if frames else ()


class _Fused(Value):
    """``[fused from N ops]``."""

    count: int


def _read_details(text: str) -> OpDetail:
    if not text:
        return OpDetail()
    value = _LINES.read(text)
    if isinstance(value, SourceFrame):
        raise GrammarError(_LINES.grammar, text, 0, ("KEY",))
    return value


@lru_cache(maxsize=DISTINCT_LINES)
def _read_line(line: str) -> SourceFrame | OpDetail | None:
    """One body line: a frame, a closing line, or (null) neither."""
    text = line.rstrip()
    try:
        value = _LINES.read(text)
    except GrammarError:
        return None
    if isinstance(value, OpDetail) and not text.startswith(CLOSING_STARTS):
        return None  # "loaded" of another writer reads like an attribute without a value
    return value


def _is_extent(key: str, value: str) -> bool:
    return key == SHAPE_KEY and natural(value, MAX_EXTENT) is not None


def _tensor(key: str, value: str) -> TensorInfo:
    tensor = parse_shape_text(value)
    role = "output" if key in OUTPUT_KEYS else "input"
    return TensorInfo(shape=tensor.shape, dtype=tensor.dtype, role=role)


def _detail(children: list[Any]) -> OpDetail:
    items = [child for child in children if isinstance(child, tuple)]
    fused = next((child.count for child in children if isinstance(child, _Fused)), None)
    attributes = tuple((key, value) for key, value, _ in items if key != "target")
    shapes = [(key, value) for key, value, shaped in items if shaped or _is_extent(key, value)]
    return OpDetail(
        attributes=attributes,
        device=next((value for key, value, _ in items if key == "target" and value), None),
        fused_from=fused,
        tensors=tuple(_tensor(key, value) for key, value in shapes),
    )


def _frame(children: list[Any]) -> SourceFrame:
    path, line, function = map(token_text, children)
    return SourceFrame(file=path, line=need_integer(line), function=function)


def _attribute(children: list[Any]) -> tuple[str, str, bool]:
    """Key, value, and whether the value is a shape."""
    key, *values = children
    value = token_text(values[0]) if values else ""
    return token_text(key), value, bool(values) and token_type(values[0]) == "TENSOR"


def _fused(children: list[Any]) -> _Fused:
    return _Fused(count=need_integer(children[0]))


_LINES = Reader[SourceFrame | OpDetail](
    "op_detail",
    {"start": first_child, "frame": _frame, "details": _detail, "fused": _fused, "attribute": _attribute},
)

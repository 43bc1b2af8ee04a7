"""Facts about single ops: their bodies, shapes and source frames, read by line number where needed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
import polars as pl

from analyzer.grammar import GrammarError
from analyzer.model import Line, OpDetail, OpExpr, OpFacts
from analyzer.numbers import MAX_EXTENT, natural
from analyzer.parse.op_detail import parse_op_detail
from analyzer.parse.op_name import parse_op_name
from analyzer.schema import OpRef, SourceFrame, TensorInfo
from analyzer.timeline.launches import leaves_of, leaves_of_kernel

_BODY_LIMIT = 600  # a fused op of dozens of source ops with deep stacks; more is another writer's text
_MXNXK = "INFO::: MxNxK: "
_DTYPES = "INFO::: Data types: "
_OP = "[OP] "
_GRID = "grid"
_TARGET = re.compile(r"(?:^|;)target=([a-z]+(?::[0-9]+)?)")  # another writer's text can be glued to it
# Frames below these belong to the framework: the op was made by the frame that called into them
# (observed.md 2: frames keep the last three path parts only).
_LIBRARY = (
    "graph/ops/", "max/graph/", "max/nn/", "max/engine/", "max/experimental/", "site-packages/",
    "dist-packages/", "record/ops/", "replay/hooks/", "nn/modules/", "torch/nn/", "torch/_", "torch/utils/",
    "torch/fx/", "triton/runtime/", "triton/backends/", "backends/nvidia/", "backends/amd/",
    "triton/knobs.py", "triton/compiler/",
)  # fmt: skip


class Lines(Protocol):
    """Reads lines of one source without their envelope."""

    def lines(self, first: int, last: int) -> list[Line]:
        """Lines ``first`` to ``last``."""


def is_library_frame(frame: SourceFrame) -> bool:
    """Whether a frame is inside the framework and not code that somebody wrote to serve a model."""
    path = f"/{frame.file}"
    return any(f"/{part}" in path for part in _LIBRARY)


def user_frame(stack: Sequence[SourceFrame]) -> SourceFrame | None:
    """The innermost frame that is not the framework's own; the innermost of all if there is none."""
    if not stack:
        return None
    return next((frame for frame in reversed(stack) if not is_library_frame(frame)), stack[-1])


def op_ref(row: Mapping[str, object], device: str | None = None) -> OpRef:
    """The reference to a row of ``TIMELINE``."""
    detail = str(row["detail"] or "").strip()
    return OpRef(
        name=str(row["name"]),
        id=_int(row["id"]),
        process=str(row["process"]),
        input=_int(row["source"]) or 0,
        line=_int(row["launch_line"]),
        device=device or _device_of(detail),
        step=_int(row["step"]),
        detail=detail or None,
    )


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _device_of(detail: str) -> str | None:
    found = _TARGET.search(detail)
    return found.group(1) if found else None


def read_details(rows: Iterable[Mapping[str, object]], lines: Lines) -> dict[int, OpDetail]:
    """Details of ops with the bodies that follow their launch lines, by launch line."""
    details = {}
    for row in rows:
        head = str(row["detail"] or "").strip()
        first = _int(row["launch_line"]) or 0
        body = [] if head else _body(row, first, lines)
        try:
            details[first] = parse_op_detail(head, body)
        except GrammarError:
            details[first] = OpDetail(device=_device_of(head))
    return details


def _body(row: Mapping[str, object], first: int, lines: Lines) -> list[str]:
    """Texts of the body: to the closing line if the scan found one, else up to the next record."""
    last = _int(row["body_last"]) or first + _BODY_LIMIT
    found: list[str] = []
    for line in lines.lines(first + 1, min(last, first + _BODY_LIMIT)):
        if line.process != row["process"]:
            continue
        if line.text.startswith(_OP) and row["body_last"] is None:
            break
        found.append(line.text)
    return found


def matmul_shapes(row: Mapping[str, object], lines: Lines) -> tuple[TensorInfo, ...]:
    """Operands of a matmul from the two INFO lines inside its record (observed.md 6)."""
    first, last = _int(row["launch_line"]) or 0, _int(row["completion_line"])
    if last is None or last - first > _BODY_LIMIT:
        return ()
    texts = [line.text for line in lines.lines(first, last) if line.process == row["process"]]
    sizes = next((text.removeprefix(_MXNXK) for text in texts if text.startswith(_MXNXK)), "")
    dtypes = next((text.removeprefix(_DTYPES) for text in texts if text.startswith(_DTYPES)), "")
    numbers = [
        number for part in sizes.strip().split("x") if (number := natural(part, MAX_EXTENT)) is not None
    ]
    words = dtypes.replace("=", " ").split()
    kinds = dict(zip(words[::2], words[1::2], strict=False))
    if len(numbers) != 3 or not {"A", "B", "C"} <= kinds.keys():
        return ()
    m, n, k = numbers
    shapes = {"A": [m, k], "B": [k, n], "C": [m, n]}
    return tuple(
        TensorInfo(shape=list(shape), dtype=kinds[name], role="output" if name == "C" else "input")
        for name, shape in shapes.items()
    )


def parse_names(names: Iterable[str]) -> dict[str, OpExpr | None]:
    """Each distinct op name read once; null = the grammar did not read it."""
    parsed: dict[str, OpExpr | None] = {}
    for name in set(names):
        try:
            parsed[name] = parse_op_name(name)
        except GrammarError:
            parsed[name] = None
    return parsed


def _leaves(name: str, expr: OpExpr | None, detail: OpDetail) -> tuple[str, ...]:
    """What an op does. One with a launch grid is a Triton kernel in PyTorch's op log."""
    if any(key == _GRID for key, _ in detail.attributes) and "::" not in name:
        return leaves_of_kernel(name)
    return tuple(expr.leaves()) if expr else (name,)


def gather_facts(
    window: pl.DataFrame, before: pl.DataFrame, lines: Lines, types: Mapping[str, Sequence[TensorInfo]]
) -> list[OpFacts]:
    """Facts of the outer ops of a window, in launch order.

    Args:
        window: Rows of ``TIMELINE`` (one source).
        before: Rows of the same process before the window, for novelty.
        lines: Reader of the source.
        types: Operand types by op name, from an IR file or a fusion tree.
    """
    rows = window.to_dicts()
    children = _children(rows)
    gathered = _Gathered(
        lines=lines,
        types=types,
        details=read_details(rows, lines),
        names=parse_names(str(row["name"]) for row in rows),
        counts=dict(before.group_by("name").len().with_columns(pl.col("name").cast(pl.String)).iter_rows()),
    )
    return [gathered.facts(row, children[_key(row)]) for row in rows if row["parent"] is None]


def _key(row: Mapping[str, object]) -> tuple[object, object]:
    return row["run"], row["id"]


def _children(
    rows: Sequence[Mapping[str, object]],
) -> dict[tuple[object, object], list[Mapping[str, object]]]:
    """All ops enclosed by an outer op, at any depth."""
    outer: dict[tuple[object, object], tuple[object, object]] = {}
    grouped: dict[tuple[object, object], list[Mapping[str, object]]] = defaultdict(list)
    for row in rows:
        key = _key(row)
        parent = (row["run"], row["parent"])
        outer[key] = key if row["parent"] is None else outer.get(parent, parent)
        if outer[key] != key:
            grouped[outer[key]].append(row)
    return grouped


class _Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """What was read for all ops of a window at once. Empty ``counts`` = nothing came before."""

    lines: Lines
    types: Mapping[str, Sequence[TensorInfo]]
    details: Mapping[int, OpDetail]
    names: Mapping[str, OpExpr | None]
    counts: Mapping[str, int]

    def facts(self, row: Mapping[str, object], inner: Sequence[Mapping[str, object]]) -> OpFacts:
        """Facts of one outer op with the ops it encloses."""
        name, first = str(row["name"]), _int(row["launch_line"]) or 0
        detail, expr = self.details[first], self.names[name]
        told = op_ref(row).device or detail.device
        device = told or next((d for one in inner if (d := op_ref(one).device)), None)
        frames = [frame for stack in detail.stacks if (frame := user_frame(stack))]
        return OpFacts(
            ref=op_ref(row, device),
            launch_line=first,
            completion_line=_int(row["completion_line"]),
            run=_int(row["run"]) or 0,
            expr=expr,
            leaves=leaves_of(row) or _leaves(name, expr, detail),
            detail=detail,
            tensors=self._tensors(name, detail, (row, *inner)),
            source=tuple(dict.fromkeys(frames)),
            novel=name not in self.counts if self.counts else None,
            count_before=self.counts.get(name, 0),
            inner=tuple(op_ref(one) for one in inner),
        )

    def _tensors(
        self, name: str, detail: OpDetail, rows: Iterable[Mapping[str, object]]
    ) -> tuple[TensorInfo, ...]:
        """Operand types: of the IR file, else of the record, else of the matmul lines inside it."""
        if known := tuple(self.types.get(name, ())) or detail.tensors:
            return known
        return next((found for row in rows if (found := matmul_shapes(row, self.lines))), ())

"""The tree of ops that a fused kernel was made of (``grammars/fusion_info.lark``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from analyzer.grammar import MAX_DEPTH, GrammarError, Reader, token_text, token_type
from analyzer.model import FusionNode, OpExpr
from analyzer.parse.op_name import NAME_RULES
from analyzer.parse.tensor_type import Signature, parse_signature
from analyzer.schema import TensorInfo, Value

GRAMMAR = "fusion_info"
HEADERS = ("Fusion info:", "FusionInfo:")
DISTINCT_SIGNATURES = 1 << 14  # the ops of a model have some hundred; bounded for fuzzed input


def parse_fusion_tree(lines: Sequence[str]) -> FusionNode:
    """Read a fusion tree.

    Args:
        lines: The lines after ``Fusion info:`` (the header may be among them), up to a blank line
            or the end. Each may carry the ``# `` of the ``ir-output-dir`` file. All lines must have
            been indented alike: depth is told by the column of the name.

    Returns:
        The root. Structure nodes (``Prologue``, ``View``, ``Sequence``, ...) have children and no
        types; ops have types, with those that are no tensors left out.

    Raises:
        GrammarError: No tree, a line that is no node, or more than one root.
    """
    rows = [_LINES.read(line) for line in _tree_lines(lines)]
    if not rows:
        raise GrammarError(GRAMMAR, "", 0, ("a tree",))
    second = next((row for row in rows[1:] if row.column <= rows[0].column), None)
    if second is not None:
        raise GrammarError(GRAMMAR, second.text, second.column, ("a node below the root",))
    if len({row.column for row in rows}) > MAX_DEPTH:  # _build recurses
        raise GrammarError(GRAMMAR, rows[-1].text, 0, (f"nesting of at most {MAX_DEPTH} levels",))
    return _build(rows, 0, len(rows))


def to_expr(node: FusionNode) -> OpExpr:
    """The tree as the expression that op records print; types are dropped.

    ``canonical`` of it equals ``canonical`` of the op name of the same kernel.
    """
    return OpExpr(name=node.name, args=tuple(map(to_expr, node.children)), attributes=node.attributes)


def tensors(node: FusionNode) -> tuple[TensorInfo, ...]:
    """Distinct operand types of all ops of the tree, in order; inputs and outputs differ by role."""
    found: list[TensorInfo] = []  # TensorInfo holds a list and cannot be hashed; there are few
    for op in _walk(node):
        for tensor in (*op.inputs, *op.outputs):
            if tensor not in found:
                found.append(tensor)
    return tuple(found)


class _Row(Value):
    """One line: the column of its name and what it says."""

    column: int
    text: str
    name: str
    attributes: tuple[tuple[str, str], ...]
    signature: str | None


def _tree_lines(lines: Sequence[str]) -> Iterator[str]:
    begun = False
    for line in lines:
        content = line.strip().removeprefix("#").strip()
        if content in HEADERS and not begun:
            continue
        if not content and begun:
            return
        if content:
            begun = True
            yield line.rstrip()


def _build(rows: Sequence[_Row], first: int, end: int) -> FusionNode:
    """The node of ``rows[first]``; its descendants are ``rows[first + 1 : end]``."""
    row = rows[first]
    inputs, outputs = ((), ()) if row.signature is None else _signature(row.signature)
    return FusionNode(
        name=row.name,
        attributes=row.attributes,
        inputs=inputs,
        outputs=outputs,
        children=tuple(_children(rows, first + 1, end)),
    )


def _children(rows: Sequence[_Row], first: int, end: int) -> Iterator[FusionNode]:
    while first < end:
        column = rows[first].column
        after = next((i for i in range(first + 1, end) if rows[i].column <= column), end)
        yield _build(rows, first, after)
        first = after


def _walk(node: FusionNode) -> Iterator[FusionNode]:
    yield node
    for child in node.children:
        yield from _walk(child)


@lru_cache(maxsize=DISTINCT_SIGNATURES)
def _signature(text: str) -> Signature:
    return parse_signature(text)


def _row(children: list[Any]) -> _Row:
    tokens = {token_type(child): child for child in children}
    margin, signature = tokens.get("MARGIN", ""), tokens.get("SIGNATURE")
    name = next(c for c in children if isinstance(c, str) and token_type(c) is None)
    return _Row(
        column=len(margin),
        text=f"{margin}{name}",
        name=name,
        attributes=tuple(c for c in children if isinstance(c, tuple)),
        signature=None if signature is None else token_text(signature),
    )


_LINES = Reader[_Row](GRAMMAR, {**NAME_RULES, "start": _row})

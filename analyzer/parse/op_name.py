"""Names of op records as expressions (``grammars/op_name.lark``), and a form to join them by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from analyzer.grammar import Reader, first_child, token_text, token_type
from analyzer.model import OpExpr

DIALECTS = ("mo.", "mogg.", "rmo.", "mgp.")


def parse_op_name(text: str) -> OpExpr:
    """Read the name of an op record.

    Args:
        text: What stands between ``LAUNCH``/``COMPLETE`` and ``[id=N]``; blanks at its ends are
            dropped. Other frameworks' names (``aten::index_select``) are expressions without
            arguments.

    Returns:
        The expression. ``kind`` is null where nothing is glued to the name; arguments and
        attributes keep their order; attribute values are text as printed.

    Raises:
        GrammarError: The text is empty, unbalanced, or holds something that no name has.
    """
    return _NAMES.read(text.strip())


def to_text(expr: OpExpr) -> str:
    """The expression in the spelling of the log; ``parse_op_name`` reads it back to the same."""
    return _written(f"{expr.kind or ''}{expr.name}", [to_text(arg) for arg in expr.args], expr.attributes)


def canonical(expr: OpExpr) -> str:
    """The expression without dialects and kinds: what op records and ``Fusion info`` trees share.

    ``matmulEpilogue(mo.matmul, mo.silu, operandIndices=[0])``, the tree with ``mo.matmul`` and the
    outer record ``Epilogue(matmul, silu, operandIndices=[0])`` are the same op (observed.md 3, 10).
    """
    attributes = tuple((key, "".join(value.split())) for key, value in expr.attributes)
    return _written(without_dialect(expr.name), [canonical(arg) for arg in expr.args], attributes)


def without_dialect(name: str) -> str:
    """``mo.reduce.mean`` -> ``reduce.mean``; a name without a dialect stays as it is."""
    for dialect in DIALECTS:
        if name.startswith(dialect):
            return name[len(dialect) :]
    return name


def _written(head: str, args: list[str], attributes: tuple[tuple[str, str], ...]) -> str:
    items = args + [f"{key}={value}" for key, value in attributes]
    return f"{head}({', '.join(items)})" if items else head


def _joined(parts: list[Any]) -> str:
    return "".join(map(token_text, parts))


def _attribute(children: list[Any]) -> tuple[str, str]:
    key, value = children
    return token_text(key), token_text(value)


def _expr(children: list[Any]) -> OpExpr:
    kind = token_text(children.pop(0)) if token_type(children[0]) == "KIND" else None
    name, *items = children
    return OpExpr(
        name=name,
        args=tuple(item for item in items if isinstance(item, OpExpr)),
        attributes=tuple(item for item in items if isinstance(item, tuple)),
        kind=kind,
    )


# Rules of name and attribute; fusion_info.lark imports them.
NAME_RULES: Mapping[str, Callable[[list[Any]], Any]] = {
    **dict.fromkeys(("name", "template", "inner_template", "subscript", "inner_subscript"), _joined),
    **dict.fromkeys(("value", "group", "inner_group"), _joined),
    "attribute": _attribute,
}
_NAMES = Reader[OpExpr]("op_name", {**NAME_RULES, "expr": _expr, "start": first_child})

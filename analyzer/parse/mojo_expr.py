"""Statements and expressions of Mojo, as far as ``ir-output-dir`` files need them (``mojo_ir.lark``)."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any, Literal, NamedTuple

from analyzer.grammar import Reader, first_child, token_text

GRAMMAR = "mojo_ir"


class Expr(NamedTuple):
    """A Mojo expression. ``text`` is the name, number, string literal or attribute."""

    kind: Literal["name", "number", "string", "list", "attribute", "index", "call"]
    text: str = ""
    base: Expr | None = None
    args: tuple[Expr, ...] = ()
    keywords: tuple[tuple[str, Expr], ...] = ()

    def keyword(self, name: str) -> Expr | None:
        """The value of a keyword argument, null if it is not given."""
        return dict(self.keywords).get(name)

    def string(self) -> str | None:
        """The value of a string literal, null for anything else."""
        if self.kind != "string":
            return None
        try:
            value = ast.literal_eval(self.text)  # Mojo's escapes are Python's
        except (SyntaxError, ValueError):
            return None
        return value if isinstance(value, str) else None

    def callee(self) -> Expr:
        """What a call calls, without its parameters in brackets."""
        base = self.base or self
        return base.base if base.kind == "index" and base.base else base


class Import(NamedTuple):
    """``import mojo_pkg_5af0.badops``."""

    path: str


class Define(NamedTuple):
    """``def __matmul(arg__0: ..., arg__1: ...) raises:``; types are dropped."""

    name: str
    parameters: tuple[str, ...]


class Trace(NamedTuple):
    """``with max.runtime.tracing.Trace[...]("name", "detail", task_id = ...):``."""

    expr: Expr


class Bind(NamedTuple):
    """``var name: type = expr``; ``expr`` is null for a declaration alone."""

    name: str
    expr: Expr | None


class CallLine(NamedTuple):
    """``__matmul(var___6, var___10)`` as a statement."""

    name: str
    call: Expr


Statement = Import | Define | Trace | Bind | CallLine


def parse_statement(line: str) -> Statement:
    """Read one line: an import, a function head, a trace, a binding or a plain call.

    Raises:
        GrammarError: The line is none of these (most of Mojo is not).
    """
    return _STATEMENTS.read(line.strip())


def _split(children: list[Any]) -> tuple[tuple[Expr, ...], tuple[tuple[str, Expr], ...]]:
    """Positional and keyword arguments."""
    plain = tuple(child for child in children if isinstance(child, Expr))
    return plain, tuple(child for child in children if not isinstance(child, Expr))


def _atom(kind: Literal["name", "number", "string"], children: list[Any]) -> Expr:
    return Expr(kind, token_text(children[0]))


def _list(children: list[Any]) -> Expr:
    return Expr("list", args=_split(children)[0])


def _attribute(children: list[Any]) -> Expr:
    return Expr("attribute", token_text(children[1]), base=children[0])


def _applied(kind: Literal["call", "index"], children: list[Any]) -> Expr:
    args, keywords = _split(children[1:])
    return Expr(kind, base=children[0], args=args, keywords=keywords)


def _keyword(children: list[Any]) -> tuple[str, Expr]:
    return token_text(children[0]), children[1]


def _import(children: list[str]) -> Import:
    return Import(children[0])


def _define(children: list[Any]) -> Define:
    parameters = tuple(child for child in children[1:] if child is not None)
    return Define(token_text(children[0]), parameters)


def _trace(children: list[Expr]) -> Trace:
    return Trace(children[0])


def _bind(children: list[Any]) -> Bind:
    return Bind(token_text(children[0]), next((c for c in children[1:] if c is not None), None))


def _call_line(children: list[Any]) -> CallLine:
    name, (args, keywords) = token_text(children[0]), children[1]
    return CallLine(name, Expr("call", base=Expr("name", name), args=args, keywords=keywords))


def _dropped(_: list[Any]) -> None:
    """Types and effects say nothing about buffers."""


_STATEMENTS = Reader[Statement](
    GRAMMAR,
    {
        "start": first_child,
        "import_": _import,
        "dotted": ".".join,
        "define": _define,
        "parameter": lambda children: token_text(children[0]),
        "effect": _dropped,
        "type": _dropped,
        "trace": _trace,
        "bind": _bind,
        "call_line": _call_line,
        "args": _split,
        "expr": first_child,  # "^" hands a value over; the buffer stays the same
        "name": partial(_atom, "name"),
        "number": partial(_atom, "number"),
        "string": partial(_atom, "string"),
        "list": _list,
        "attribute": _attribute,
        "index": partial(_applied, "index"),
        "call": partial(_applied, "call"),
        "keyword": _keyword,
    },
)

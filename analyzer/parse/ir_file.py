"""The ``<graph>.mojo`` file of ``ir-output-dir`` (observed.md 18): kernels, calls and buffers.

The file is read line by line. Lines that say something about kernels go through
``grammars/mojo_ir.lark``; the rest (structs, elementwise bodies, error paths) is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from analyzer.grammar import GrammarError
from analyzer.model import FusionNode
from analyzer.numbers import natural
from analyzer.parse.fusion_tree import parse_fusion_tree, tensors
from analyzer.parse.mojo_expr import (
    GRAMMAR,
    Bind,
    CallLine,
    Define,
    Expr,
    Import,
    Statement,
    Trace,
    parse_statement,
)
from analyzer.schema import TensorInfo, Value

PACKAGE_PREFIX = "mojo_pkg_"
FUSION_HEADER = "# FusionInfo:"
ERROR_PATH = "    except "  # of the whole function: it binds its own variables and calls no kernel
MAX_RANK = 32  # of a tensor whose extents are not shown; guards against nonsense, real ranks end at 8
# Calls that hand a buffer through unchanged, by the last part of their name.
POINTER_METHODS = frozenset({"unsafe_ptr", "unsafe_bitcast"})
UNPACKS = frozenset({"unpack_tensor", "unpack_buffer_ref", "mgp_tensor_extract_buffer"})


class IrArgument(Value):
    """One parameter of a kernel. ``tensor`` is null for what is no tensor (the device context).

    ``reads`` and ``writes`` say how the kernel binds it; both are false where the text tells
    nothing. ``dtype`` has Mojo's spelling (``float32``).
    """

    name: str
    reads: bool = False
    writes: bool = False
    tensor: TensorInfo | None = None


class IrKernel(Value):
    """One traced kernel.

    ``name`` and ``detail`` are the pair its trace prints in the op log, before ``;target=gpu:0``
    is appended; ``target`` is ``gpu`` or ``cpu`` (null = not said). ``fusion`` is null where the
    file has no tree for it; ``tensors`` are the distinct types of the tree. ``line`` is its ``def``.
    """

    symbol: str
    name: str
    detail: str
    line: int
    target: str | None = None
    fusion: FusionNode | None = None
    tensors: tuple[TensorInfo, ...] = ()
    arguments: tuple[IrArgument, ...] = ()


class IrCall(Value):
    """One kernel call of an entry point.

    ``arguments`` are the names as printed; ``buffers`` has the buffer behind each (null = none, as
    for the device context). ``arg__0[7]`` is slot 7 of the entry's inputs, ``var___9[0]`` a piece
    of a pool; equal names mean the same memory within one ``entry`` only. ``reads`` and
    ``writes`` are the distinct buffers that the kernel reads and writes.
    """

    entry: str
    kernel: str
    line: int
    arguments: tuple[str, ...]
    buffers: tuple[str | None, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class IrModule(Value):
    """One file.

    ``calls`` are in launch order within an entry; entries stand in the file's order, which is not
    that of execution. ``unread`` are numbers of lines that should say something but were not read.
    """

    packages: tuple[str, ...] = ()
    kernels: tuple[IrKernel, ...] = ()
    calls: tuple[IrCall, ...] = ()
    unread: tuple[int, ...] = ()


def parse_ir(text: str) -> IrModule:
    """Read an ``ir-output-dir`` file.

    Args:
        text: The whole ``.mojo`` file.

    Returns:
        Packages (modules ``mojo_pkg_<hash>`` that hold custom ops) and kernels in file order.

    Raises:
        GrammarError: There is no traced kernel and no package in it: another kind of file.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    unread: list[int] = []
    packages = dict.fromkeys(_packages(lines, unread))
    functions = [_read_function(section, unread) for section in _sections(lines)]
    kernels = tuple(kernel for function in functions for kernel in _kernels(function, unread))
    if not kernels and not packages:
        raise GrammarError(GRAMMAR, text, 0, ("a traced kernel",))
    by_symbol = {kernel.symbol: kernel for kernel in kernels}
    calls = tuple(call for function in functions for call in _calls(function, by_symbol))
    return IrModule(packages=tuple(packages), kernels=kernels, calls=calls, unread=tuple(sorted(unread)))


class _Section(NamedTuple):
    """A function of the file: index of its ``def`` line, the comment above it, the lines below."""

    first: int
    head: str
    comment: Sequence[str]
    body: Sequence[str]


class _Function(NamedTuple):
    section: _Section
    define: Define
    statements: Sequence[tuple[int, Statement]]  # with line numbers, in order


def _packages(lines: Sequence[str], unread: list[int]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if line.startswith(f"import {PACKAGE_PREFIX}"):
            statement = _read(line, number, unread)
            if isinstance(statement, Import):
                yield statement.path.partition(".")[0]


def _sections(lines: Sequence[str]) -> Iterator[_Section]:
    comment: list[str] = []
    for index, line in enumerate(lines):
        if line == FUSION_HEADER:
            comment = []
        if line.startswith("#"):
            comment.append(line)
        elif line.startswith("def "):
            end = next((i for i in range(index + 1, len(lines)) if _at_margin(lines[i])), len(lines))
            yield _Section(index, line, comment, lines[index + 1 : end])
            comment = []
        elif _at_margin(line) and not line.startswith("@"):
            comment = []


def _at_margin(line: str) -> bool:
    return bool(line) and not line[0].isspace()


def _is_wanted(line: str) -> bool:
    """Literal gate: bindings, traces and plain calls of ``__symbols``."""
    return (
        line.startswith("var ")
        or (line.startswith("with ") and "Trace[" in line)
        or (line.startswith("__") and line.endswith(")"))
    )


def _read_function(section: _Section, unread: list[int]) -> _Function:
    number = section.first + 1
    define = _read(section.head, number, unread)
    statements = []
    for offset, line in enumerate(section.body, 1):
        if line.startswith(ERROR_PATH):
            break
        content = line.strip()
        statement = _read(content, number + offset, unread) if _is_wanted(content) else None
        if statement is not None:
            statements.append((number + offset, statement))
    return _Function(section, define if isinstance(define, Define) else Define("", ()), statements)


def _read(line: str, number: int, unread: list[int]) -> Statement | None:
    try:
        return parse_statement(line)
    except GrammarError:
        unread.append(number)
        return None


def _kernels(function: _Function, unread: list[int]) -> Iterator[IrKernel]:
    for number, statement in function.statements:
        if not isinstance(statement, Trace):
            continue
        pair = [arg.string() for arg in statement.expr.args[:2]]
        name, detail = (*pair, None, None)[:2]
        if name is None:
            unread.append(number)
            continue
        fusion = _fusion(function.section, unread)
        yield IrKernel(
            symbol=function.define.name,
            name=name,
            detail=detail or "",
            line=function.section.first + 1,
            target=_target(statement.expr),
            fusion=fusion,
            tensors=() if fusion is None else tensors(fusion),
            arguments=_arguments(function),
        )


def _fusion(section: _Section, unread: list[int]) -> FusionNode | None:
    if not section.comment or section.comment[0] != FUSION_HEADER:
        return None
    try:
        return parse_fusion_tree(section.comment)
    except GrammarError:
        unread.append(section.first + 1)
        return None


def _target(trace: Expr) -> str | None:
    """``gpu`` from ``Trace[..., target = StaticString("gpu")](...)``."""
    value = trace.base.keyword("target") if trace.base else None
    return value.args[0].string() if value is not None and value.args else None


def _arguments(function: _Function) -> tuple[IrArgument, ...]:
    """The kernel's parameters with what ``mogg_tensor_init`` says about them."""
    shapes: dict[str, list[int | None]] = {}
    found: dict[str, IrArgument] = {name: IrArgument(name=name) for name in function.define.parameters}
    for _, statement in function.statements:
        if not isinstance(statement, Bind) or statement.expr is None or statement.expr.kind != "call":
            continue
        shape = _shape(statement.expr, shapes)
        if shape is not None:
            shapes[statement.name] = shape
        argument = _bound_argument(statement.expr, shapes)
        if argument is not None and argument.name in found:
            found[argument.name] = _merged(found[argument.name], argument)
    return tuple(found.values())


def _shape(expr: Expr, shapes: Mapping[str, list[int | None]]) -> list[int | None] | None:
    """Extents of ``Coord(Idx[64], Idx[128])`` or of ``row_major(<one of those>)``."""
    callee = expr.callee().text
    if callee == "Coord":
        return [_extent(arg) for arg in expr.args]
    if callee == "row_major" and expr.args:
        return shapes.get(expr.args[0].text)
    return None


def _extent(expr: Expr) -> int | None:
    is_static = expr.kind == "index" and len(expr.args) == 1
    return natural(expr.args[0].text) if is_static else None


def _bound_argument(expr: Expr, shapes: Mapping[str, list[int | None]]) -> IrArgument | None:
    """``mogg_tensor_init[DType.float32, 2, False, extensibility.IO.Input, 256](arg__0..., layout)``."""
    if expr.callee().text != "mogg_tensor_init" or expr.base is None or len(expr.args) < 2:
        return None
    parameters = [parameter.text for parameter in expr.base.args]
    name = _buffer(expr.args[0], {})
    if name is None or len(parameters) < 4:
        return None
    dtype, rank, _, use = parameters[:4]
    shape = shapes.get(expr.args[1].text)
    if shape is None:
        shape = [None] * min(MAX_RANK, natural(rank) or 0)
    writes = use.endswith("Output") or use.startswith("Mut")
    role = "output" if writes else "input"
    tensor = TensorInfo(shape=shape, dtype=dtype, role=role)
    return IrArgument(name=name, reads=not use.endswith("Output"), writes=writes, tensor=tensor)


def _merged(known: IrArgument, new: IrArgument) -> IrArgument:
    return IrArgument(
        name=known.name,
        reads=known.reads or new.reads,
        writes=known.writes or new.writes,
        tensor=known.tensor or new.tensor,
    )


def _calls(function: _Function, kernels: Mapping[str, IrKernel]) -> Iterator[IrCall]:
    aliases: dict[str, str] = {}
    pointers: dict[str, str] = {}
    for number, statement in function.statements:
        if isinstance(statement, Bind) and statement.expr is not None:
            buffer = _buffer(statement.expr, aliases)
            if buffer is not None:
                aliases[statement.name] = buffer
                if statement.expr.callee().text in POINTER_METHODS:
                    pointers[statement.name] = buffer
        elif isinstance(statement, CallLine) and statement.name in kernels:
            kernel = kernels[statement.name]
            yield _call(function.define.name, kernel, number, statement.call, pointers)


def _call(entry: str, kernel: IrKernel, line: int, call: Expr, pointers: Mapping[str, str]) -> IrCall:
    names = tuple(arg.text for arg in call.args)
    buffers = tuple(pointers.get(name) for name in names)
    pairs = list(zip(kernel.arguments, buffers, strict=False))
    return IrCall(
        entry=entry,
        kernel=kernel.symbol,
        line=line,
        arguments=names,
        buffers=buffers,
        reads=tuple(dict.fromkeys(b for argument, b in pairs if b is not None and argument.reads)),
        writes=tuple(dict.fromkeys(b for argument, b in pairs if b is not None and argument.writes)),
    )


def _buffer(expr: Expr, aliases: Mapping[str, str]) -> str | None:
    """The buffer that an expression stands for, null if it makes a new value."""
    if expr.kind == "name":
        return aliases.get(expr.text, expr.text)
    if expr.kind == "index" and expr.base is not None:
        element = expr.keyword("unsafe_offset") or (expr.args[0] if len(expr.args) == 1 else None)
        base = _buffer(expr.base, aliases)
        return None if element is None or base is None else f"{base}[{element.text}]"
    if expr.kind == "call":
        handed = _handed_through(expr)
        return None if handed is None else _buffer(handed, aliases)
    return None


def _handed_through(call: Expr) -> Expr | None:
    callee = call.callee()
    if callee.kind == "attribute" and callee.text in POINTER_METHODS:
        return callee.base
    if callee.text in UNPACKS and call.args:
        return call.args[0]
    return call.keyword("take_slot")  # AnyAsyncValueRef(take_slot=arg__0[unsafe_offset=3])

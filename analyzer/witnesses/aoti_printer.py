"""AOTInductor's value printer: which kernels were launched, and what their tensors held (observed.md 29-34).

``AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER`` makes generated code save (1), print (2) or name (3) what a
kernel is given and what it leaves. Each distinct header goes through Lark once; launches and values are told
for all of them in columns (``aoti_launches``, ``aoti_values``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import polars as pl

from analyzer.grammar import GrammarError, parse, token_text, token_type
from analyzer.model import STEP_MARKS, KernelLog, Reading
from analyzer.witness import Fetch, Witness
from analyzer.witnesses.aoti_launches import HEADS, number_launches
from analyzer.witnesses.aoti_values import with_values
from analyzer.witnesses.distinct import Losses

NAME = "aoti_printer"
_GLUE = "\\n"  # the C++ wrapper prints it as two characters (observed.md 33)
_OPENER = re.compile(
    r"\[ {1,2}(?:before_launch|after_launch|aoti_model_inputs)(?: - |: )"
    r"|(?<!\")inductor: (?:before|after)_launch - "
    r"|aoti_torch_save_tensor_handle: Saved tensor to "
)
_NAME = re.compile(r"\[ (?:before_launch|after_launch): [A-Za-z_][\w.:]* \]")
# Generated code that holds the same words: a traceback, or TORCH_LOGS=output_code.
_CODE = re.compile(
    r"(?:aoti_torch_print_tensor_handle|aoti_torch_save_tensor_handle|_print_debugging_tensor_value_info"
    r"|printf|torch\.save)\("
)
_WHILE_COMPILING = re.compile(r"(?m)^(?>.*?Saved intermediate tensor )(?>.*? for )(?>.*? to ).*_launch_")


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """One header. ``event``: before, after or input; ``value``: text of a scalar."""

    form: str
    event: str
    kernel: str | None = None
    arg: str | None = None
    value: str | None = None


def read(frame: pl.DataFrame, fetch: Fetch) -> Reading:
    """Read the gated lines of one source."""
    losses = Losses(NAME)
    heads, code = _heads(frame, losses)
    if heads.is_empty():
        return Reading(continuation=code, losses=losses.all())
    launches, prints = number_launches(heads)
    prints, bodies = with_values(prints, fetch)
    inputs = prints.filter(pl.col("event") == "input")
    return Reading(
        continuation=code,
        blocks=_block_lines(heads["line"], bodies),
        losses=losses.all(),
        kernels=KernelLog(launches=launches, prints=prints),
        step_marks=_step_marks(heads) if inputs.height else None,
    )


def _block_lines(heads: pl.Series, bodies: pl.Series) -> pl.DataFrame:
    """Each line once, as a head if it is one."""
    lines = pl.concat([heads, bodies]).unique().sort()
    return pl.DataFrame({"line": lines}).with_columns(pl.col("line").is_in(heads.implode()).alias("head"))


def _step_marks(heads: pl.DataFrame) -> pl.DataFrame:
    """The model inputs are printed once at the start of each execution."""
    is_input = pl.col("event") == "input"
    before = pl.col("event").shift(1).over("source", "process")
    first = is_input & (before.is_null() | (before != "input"))
    return heads.filter(first).select(pl.col(name).cast(kind) for name, kind in STEP_MARKS.items())


def _heads(frame: pl.DataFrame, losses: Losses) -> tuple[pl.DataFrame, list[int]]:
    """All headers in order, and the lines that hold generated code."""
    known: dict[str, list[Head]] = {}
    code, unread = [], {}
    for text in frame["text"].unique(maintain_order=True):
        if _CODE.search(text) or _WHILE_COMPILING.search(text):
            code.append(text)
            continue
        try:
            known[text] = list(read_line(text))
        except GrammarError as error:
            unread[text] = str(error)
    refused = frame.filter(pl.col("text").is_in(list(unread)))
    for source, line, text in refused.select("source", "line", "text").iter_rows():
        losses.add(source, line, text, unread[text])
    rows = [
        {"text": text, "part": part, **msgspec.structs.asdict(head)}
        for text, heads in known.items()
        for part, head in enumerate(heads)
    ]
    columns = ["text", "part", *Head.__struct_fields__]
    table = pl.DataFrame(rows, schema={name: HEADS.get(name, pl.String()) for name in columns})
    joined = frame.join(table, on="text", how="inner", maintain_order="left_right")
    lines = frame.filter(pl.col("text").is_in(code))["line"].to_list()
    return joined.select(pl.col(name).cast(kind) for name, kind in HEADS.items()), lines


def read_line(text: str) -> Iterator[Head]:
    """The headers of one line, in order; other writers' text between them is passed over.

    Raises:
        GrammarError: A header is cut off or has another form.
    """
    for line in text.split("\n"):
        for piece in line.split(_GLUE):
            found = _OPENER.search(piece)
            if found:
                yield _head(_without_glued(piece[found.start() :]).rstrip())


def _without_glued(text: str) -> str:
    """A name without the text that an abort glued to it: its line feed was lost in a buffer."""
    name = _NAME.match(text)
    return name[0] if name else text


def _head(text: str) -> Head:
    (rule,) = parse("aoti_printer", text).children
    assert not isinstance(rule, str)
    tokens = [
        (token_type(token) or "", token_text(token)) for token in rule.children if isinstance(token, str)
    ]
    return _FORMS[str(rule.data)](tokens)


_Tokens = list[tuple[str, str]]


def _first(tokens: _Tokens, kind: str) -> str:
    return next(text for name, text in tokens if name == kind)


def _joined(tokens: _Tokens) -> str:
    """The argument as generated code has it, without blanks."""
    return "".join(text for _, text in tokens)


def _tensor(tokens: _Tokens) -> Head:
    return Head(
        form="tensor", event=_event(tokens), kernel=_first(tokens, "KERNEL"), arg=_joined(tokens[3:-1])
    )


def _scalar(tokens: _Tokens) -> Head:
    arg, value = _joined(tokens[3:-2]), tokens[-2][1]
    return Head(form="scalar", event=_event(tokens), kernel=_first(tokens, "KERNEL"), arg=arg, value=value)


def _input(tokens: _Tokens) -> Head:
    return Head(form="tensor", event="input", arg=_joined(tokens[1:-1]))


def _python(tokens: _Tokens) -> Head:
    return Head(form="python", event=_event(tokens), kernel=_first(tokens, "KERNEL"), arg=_joined(tokens[2:]))


def _name(tokens: _Tokens) -> Head:
    return Head(form="name", event=_event(tokens), kernel=_first(tokens, "KERNEL"))


def _saved(tokens: _Tokens) -> Head:
    event = _first(tokens, "SAVED_EVENT").split("_", 1)[0]
    kernel, arg = _first(tokens, "SAVED_KERNEL"), _first(tokens, "SAVED_ARG")
    return Head(form="saved", event=event, kernel=kernel, arg=arg)


def _event(tokens: _Tokens) -> str:
    return _first(tokens, "EVENT").split("_", 1)[0]


_FORMS = {
    "tensor": _tensor,
    "scalar": _scalar,
    "input": _input,
    "python": _python,
    "name": _name,
    "saved": _saved,
}

WITNESS = Witness(
    name=NAME,
    program="aoti",
    value_printer=True,
    gates=("before_launch", "after_launch", "aoti_model_inputs"),
    read=read,
    bulk=True,
    grammar="aoti_printer.lark",
)

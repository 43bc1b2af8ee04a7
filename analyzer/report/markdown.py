"""Markdown for GitHub, GitLab and chat: pasted as it is, read without a renderer.

Text of the log stands in code spans only, where nothing is interpreted: no HTML, no link, no mention,
no issue reference. Words of ours are escaped all the same, since the analysis quotes the log in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch

from analyzer.report.story.telling import places_of
from analyzer.report.story.values import (
    Block,
    Cite,
    Commands,
    Entries,
    Items,
    Paragraph,
    Part,
    Picture,
    Raw,
    Section,
    Sentence,
    Story,
    Table,
    Todos,
)

_SPECIAL = re.compile(
    r"[\\`*{}\[\]<>#|~$!&]|(?<!\w)_|_(?!\w)"
)  # an underscore inside a word marks nothing up
# GitHub makes links of these after Markdown is done, so that no backslash helps; code spans are left alone.
_LIVE = re.compile(r"(?<!\S)\S*(?:@\w|#\d|://|www\.|:[a-z0-9_+-]+:|\bGH-\d)\S*", re.IGNORECASE)
_TICKS = re.compile(r"`+")
_LEADING = re.compile(r"^(\s*)([-+=])")  # would start a list or a heading
PLACES_SHOWN = 4


def render(story: Story) -> str:
    """The story as Markdown, with one newline at its end."""
    head = [f"# {_escaped(story.title)}", ""]
    body = [line for section in story.sections for line in _section(section, story.inputs)]
    return "\n".join([*head, *body, "---", "", _escaped(story.footer), ""])


def code_span(text: str) -> str:
    """A code span that holds exactly ``text``, whatever backticks are in it."""
    if not text.strip():
        return "` `"
    fence = "`" * (max((len(run) for run in _TICKS.findall(text)), default=0) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(lines: Sequence[str], language: str = "") -> list[str]:
    """A code block that no line of it can end."""
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(longest + 1, 3)
    return [f"{fence}{language}", *lines, fence]


def _escaped(text: str) -> str:
    """Words as plain text: live tokens as code, markup characters with a backslash."""
    out: list[str] = []
    end = 0
    for match in _LIVE.finditer(text):
        out += [_SPECIAL.sub(r"\\\g<0>", text[end : match.start()]), code_span(match.group())]
        end = match.end()
    return "".join([*out, _SPECIAL.sub(r"\\\g<0>", text[end:])])


def _part(part: Part) -> str:
    if part.code:
        return code_span(part.text)
    text = _escaped(part.text)
    core = text.strip()
    return text.replace(core, f"**{core}**", 1) if part.strong and core else text


def _parts(parts: Iterable[Part]) -> str:
    return "".join(_part(part) for part in parts)


def _sentence(sentence: Sentence, inputs: Sequence[str]) -> str:
    text = _LEADING.sub(r"\1\\\2", _parts(sentence.parts))
    return f"{text} {_cited(sentence.cites, inputs)}" if sentence.cites else text


def _cited(cites: Sequence[Cite], inputs: Sequence[str]) -> str:
    places = places_of(inputs, cites)
    more = [f"+{len(places) - PLACES_SHOWN}"] if len(places) > PLACES_SHOWN else []
    return f"({', '.join([code_span(place) for place in places[:PLACES_SHOWN]] + more)})"


def _section(section: Section, inputs: Sequence[str]) -> Iterator[str]:
    yield f"## {_escaped(section.title)}"
    yield ""
    for block in section.blocks:
        yield from _block(block, inputs)
        yield ""


@singledispatch
def _block(block: Block, inputs: Sequence[str]) -> Iterator[str]:
    raise TypeError(f"no Markdown for {type(block).__name__} with {len(inputs)} inputs")


@_block.register
def _(block: Paragraph, inputs: Sequence[str]) -> Iterator[str]:
    yield " ".join(_sentence(sentence, inputs) for sentence in block.sentences)


@_block.register
def _(block: Items, inputs: Sequence[str]) -> Iterator[str]:
    lines = [f"- {_sentence(sentence, inputs)}" for sentence in block.sentences]
    yield from lines if block.summary is None else _folded(block.summary, lines)


def _folded(summary: str, lines: Sequence[str]) -> list[str]:
    """GitHub's own folding; a reader without it sees the lines."""
    return [f"<details><summary>{_html(summary)}</summary>", "", *lines, "", "</details>"]


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@_block.register
def _(block: Entries, inputs: Sequence[str]) -> Iterator[str]:
    for number, entry in enumerate(block.entries):
        yield from [""] if number else []
        yield f"### {_sentence(entry.head, inputs)}"
        yield ""
        yield from (f"- {_sentence(sentence, inputs)}" for sentence in entry.body)


@_block.register
def _(block: Table, inputs: Sequence[str]) -> Iterator[str]:
    lines = [
        "| " + " | ".join(_escaped(column) for column in block.columns) + " |",
        "|" + " --- |" * len(block.columns),
    ]
    for row in block.rows:
        cells = [
            "".join(_cell(_strengthened(part, marked=row.marked and not at)) for part in cell)
            for at, cell in enumerate(row.cells)
        ]
        places = places_of(inputs, row.cites)[:PLACES_SHOWN]
        cells.append(_cell(Part(text=", ".join(places), code=True)))
        lines.append("| " + " | ".join(cells) + " |")
    yield from lines if block.summary is None else _folded(block.summary, lines)


def _strengthened(part: Part, *, marked: bool) -> Part:
    return Part(text=part.text, code=part.code, strong=marked and not part.code)  # code stays copyable


def _cell(part: Part) -> str:
    """One table cell. In a code span a pipe can be escaped, but not a backslash before it."""
    if not part.code:
        return _part(part)
    text = part.text.replace("|", r"\x7c") if "\\" in part.text else part.text
    return code_span(text).replace("|", r"\|")


@_block.register
def _(block: Commands, inputs: Sequence[str]) -> Iterator[str]:
    for number, one in enumerate(block.commands, 1):
        yield from [""] if number > 1 else []
        yield f"{number}. {_sentence(one.why, inputs)}"
        yield ""
        yield from (f"   {line}" for line in fenced([one.command], "sh"))


@_block.register
def _(block: Todos, inputs: Sequence[str]) -> Iterator[str]:
    del inputs
    for one in block.todos:
        yield f"- [ ] **{_escaped(one.label)}:** _to be filled in by the author_ ({_escaped(one.hint)})"


@_block.register
def _(block: Raw, inputs: Sequence[str]) -> Iterator[str]:
    first, last = block.lines[0].number, block.lines[-1].number
    yield f"{code_span(f'{inputs[block.input]}:{first}-{last}')}, cited lines marked with `>`:"
    yield ""
    width = len(str(last))
    yield from fenced(
        [f"{'>' if line.marked else ' '} {line.number:{width}} {line.text}" for line in block.lines], "text"
    )


@_block.register
def _(block: Picture, inputs: Sequence[str]) -> Iterator[str]:
    yield f"**{_escaped(block.title)}**"
    yield ""
    yield from fenced(block.text.split("\n"), "text")
    if block.note is not None:
        yield ""
        yield _sentence(block.note, inputs)

"""Markdown: read as GitHub reads it, and safe whatever the log says."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from analyzer.report import markdown
from analyzer.report.plain import plain
from analyzer.report.sections import claims, tell
from analyzer.report.story.telling import places_of
from analyzer.schema import Result
from tests.report import results, stories

LIVE = re.compile(r"@\w|#\d|://|www\.|\bGH-\d", re.IGNORECASE)
FOLDING = re.compile(r"(?:</?details>|<summary>[\w ,:]+</summary>|\s)+")


def parsed(text: str) -> list[Token]:
    """All tokens, inline ones too, with HTML and bare links on as on GitHub."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    out: list[Token] = []
    for token in parser.parse(text):
        out += [token, *(token.children or [])]
    return out


def rendered(result: Result, payload: str | None = None) -> str:
    context = (
        stories.hostile_context(payload) if payload is not None else stories.context_of([["x"] * 7000] * 2)
    )
    return markdown.render(tell(result, context))


def headings(tokens: list[Token]) -> list[str]:
    return [
        tokens[at + 1].content
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag != "h3"
    ]


@pytest.mark.parametrize("payload", stories.HOSTILE)
@pytest.mark.parametrize("name", ["late", "losses", "undecided"])
def test_hostile_text_adds_no_markup(name: str, payload: str) -> None:
    benign = rendered(results.ALL[name])
    hostile = rendered(stories.changed(results.ALL[name], lambda text: f"{payload}{text}{payload}"), payload)
    tokens = parsed(hostile)
    kinds = {token.type for token in tokens}
    assert kinds.isdisjoint({"html_inline", "link_open", "image", "s_open", "em_open"} - {"em_open"})
    assert [
        token.content
        for token in tokens
        if token.type == "html_block" and not FOLDING.fullmatch(token.content)
    ] == []
    assert len(headings(tokens)) == len(headings(parsed(benign)))
    assert set(headings(tokens)[1:]) == set(headings(parsed(benign))[1:])
    assert [token.content for token in tokens if token.type == "text" and LIVE.search(token.content)] == []
    assert plain(hostile.replace("\n", "")) == hostile.replace("\n", "")


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(max_size=80))
def test_a_code_span_holds_any_text(text: str) -> None:
    shown = plain(text)
    (block,) = [
        token
        for token in MarkdownIt("commonmark").parse(f"a {markdown.code_span(shown)} z")
        if token.children
    ]
    found = [token.content for token in block.children or [] if token.type == "code_inline"]
    assert found == [shown if shown.strip() else " "]


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.text(max_size=40).map(plain), max_size=6))
def test_no_line_ends_a_code_block(lines: list[str]) -> None:
    tokens = MarkdownIt("commonmark").parse("\n".join(markdown.fenced(lines)))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content.split("\n")[:-1] == lines


@pytest.mark.parametrize("name", stories.SAMPLES)
def test_every_claim_of_a_sample_stands_there_with_its_lines(name: str) -> None:
    story = tell(stories.sample_result(name), stories.sample_context(name))
    text = markdown.render(story)
    for sentence in claims(story):
        for place in places_of(story.inputs, sentence.cites)[: markdown.PLACES_SHOWN]:
            assert markdown.code_span(place) in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_tables_have_as_many_cells_as_columns_whatever_pipes_the_log_has() -> None:
    changed = stories.changed(results.late(), lambda text: text + " a|b \\| c\\\\|")
    for line in rendered(changed).split("\n"):
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) in {4, 6, 7}


def test_words_keep_their_underscores_readable() -> None:
    text = rendered(results.late())
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in text
    assert "\\_" not in text


def test_mentions_and_issue_numbers_in_words_become_code() -> None:
    found = msgspec.structs.replace(results.late().conclusion, statement="ask @team about #12 at http://x.y")
    text = rendered(msgspec.structs.replace(results.late(), conclusion=found))
    assert "ask `@team` about `#12` at `http://x.y`" in text


def test_todo_boxes_are_left_for_the_author() -> None:
    assert "- [ ] **Owner:** _to be filled in by the author_" in rendered(results.late())

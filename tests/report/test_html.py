"""HTML: one file, no script, no network, nothing injected, pictures with words beside them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from analyzer.report import html, pictures
from analyzer.report.plain import plain
from analyzer.report.request import ReportContext
from analyzer.report.sections import tell
from analyzer.schema import Result
from tests.report import results, stories

PAGE_TAGS = (
    "html head meta link title style body a header h1 p span code nav ul li main section h2 h3 strong div "
    "table caption thead tbody tr th td figure figcaption details summary pre ol footer"
)
TAGS = frozenset(f"{PAGE_TAGS} svg g path rect text line".split())
VOID = frozenset({"meta", "link"})
URLS = frozenset({"href", "src", "xlink:href", "action", "data", "poster", "srcset", "formaction"})
with_pictures = pytest.mark.skipif(not pictures.available(), reason="the extra `report` is not installed")


class Page(HTMLParser):
    """Tags, attributes and texts, and whether every tag is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [value for found, value in self.attributes if found == name]


def rendered(result: Result, context: ReportContext | None = None) -> str:
    return html.render(tell(result, context or ReportContext()))


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "available", lambda: False)


@pytest.mark.parametrize("payload", stories.HOSTILE)
@pytest.mark.parametrize("name", ["late", "losses", "proven"])
def test_hostile_text_adds_no_tag_attribute_or_url(name: str, payload: str) -> None:
    hostile = stories.changed(results.ALL[name], lambda text: f"{payload}{text}{payload}")
    text = rendered(hostile, stories.hostile_context(payload))
    page = Page(text)
    assert set(page.tags) <= TAGS
    assert page.open == []
    names = {found for found, _ in page.attributes}
    assert not [found for found in names if found.startswith("on")]
    urls = [value for found, value in page.attributes if found in URLS]
    assert [url for url in urls if not re.fullmatch(r"#[\w-]+|data:,", url)] == []
    assert str(1234 * 5678) not in text
    assert plain(text.replace("\n", "")) == text.replace("\n", "")


@pytest.mark.parametrize("name", stories.SAMPLES)
def test_pages_of_the_samples_are_well_formed_and_their_links_lead_somewhere(name: str) -> None:
    page = Page(rendered(stories.sample_result(name), stories.sample_context(name)))
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    assert {value[1:] for value in page.values("href") if value.startswith("#")} <= set(ids)
    assert set(page.values("aria-labelledby")) <= set(ids)
    assert {"script", "img", "iframe", "object"}.isdisjoint(page.tags)


def test_page_allows_itself_neither_script_nor_network() -> None:
    text = rendered(results.late())
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in text
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text


def test_citations_lead_to_the_quoted_lines() -> None:
    text = rendered(results.late(), stories.context_of([["x"] * 7000]))
    assert '<a href="#L0-6926"><code>serve.log:6926-6927</code></a>' in text
    assert '<span id="L0-6926" class="cited">' in text
    assert "<code>serve.log:6236</code>" in text  # not quoted, so no link


@pytest.mark.usefixtures("no_pictures")
def test_without_the_extra_the_page_shows_the_pictures_as_text_and_says_so() -> None:
    text = rendered(results.late())
    assert "<svg" not in text
    assert "[287 cleared] |▆▁| X" in text
    assert "the optional extra <code>report</code> is not installed" in text


@with_pictures
def test_pictures_are_inline_named_and_take_their_colours_from_the_page() -> None:
    text = rendered(results.late())
    svgs = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    assert len(svgs) == 2
    css = Path(html.__file__).with_name("templates").joinpath("report.css").read_text(encoding="utf-8")
    for svg in svgs:
        assert re.match(r'<svg role="img" aria-label="[^"]{20,}"', svg)
        used = set(re.findall(r"var\((--\w+)\)", svg))
        assert {"--ink", "--suspect"} <= used
        assert all(f"{name}:" in css for name in used)
    assert "suspect 1, line 6548" in svgs[0]
    assert "custom__paged_lookup" in svgs[1]
    assert "not installed" not in text


def test_same_story_gives_the_same_page() -> None:
    assert rendered(results.late()) == rendered(results.late())

"""One self-contained HTML file: no script, no network, legible on a phone, in the dark and on paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import jinja2
from markupsafe import Markup

from analyzer.report import pictures
from analyzer.report.story.telling import places_of
from analyzer.report.story.values import Cite, Picture, Raw, Story
from analyzer.schema import Value


class Place(Value):
    """A citation as the page shows it; ``target`` = the line's anchor, null where it is not quoted."""

    text: str
    target: str | None


def render(story: Story) -> str:
    """The story as a page."""
    quoted = _quoted(story)

    def places(cites: Sequence[Cite]) -> list[Place]:
        known = dict.fromkeys((places_of(story.inputs, [cite])[0], _anchor(cite, quoted)) for cite in cites)
        return [Place(text=text, target=target) for text, target in known]

    return _template().render(
        story=story,
        places=places,
        draw=_drawn,
        drawable=pictures.available(),
        kind=lambda block: type(block).__name__,
    )


def _quoted(story: Story) -> frozenset[tuple[int, int]]:
    blocks = [block for section in story.sections for block in section.blocks if isinstance(block, Raw)]
    return frozenset((block.input, line.number) for block in blocks for line in block.lines)


def _anchor(cite: Cite, quoted: frozenset[tuple[int, int]]) -> str | None:
    if cite.line is None or (cite.input, cite.line) not in quoted:
        return None
    return f"L{cite.input}-{cite.line}"


def _drawn(picture: Picture) -> Markup | None:
    """The SVG comes from the plotting library, which escapes the texts that it is given."""
    svg = pictures.draw(picture)
    return None if svg is None else Markup(svg)  # noqa: S704 (checked by the tests with hostile names)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analyzer.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.j2")

"""Comments cite the documents by section or item: each one that is cited exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_CITED = re.compile(
    r"(?P<doc>formats|observed|design|style)\.md(?P<rest>,? (?:(?:rules?|rows?|section) )?[0-9][0-9.]*"
    r"(?:(?:, | and |-)(?:(?:rules?|rows?) )?[0-9][0-9.]*)*)?"
)
_NUMBER = re.compile(r"(rows? )?([0-9]+(?:\.[0-9]+)*)(?:-([0-9]+(?:\.[0-9]+)*))?")
_HEADING = re.compile(r"^#{2,3} ([0-9]+(?:\.[0-9]+)?)\.? ", re.MULTILINE)
_ROW = re.compile(r"^\| ([0-9]+) \|", re.MULTILINE)
_ITEM = re.compile(r"^([0-9]+)\. ", re.MULTILINE)
_SECTION = re.compile(r"^## ([0-9]+)\. .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def _numbers(doc: str) -> set[str]:
    """Sections of a document, and the items of its numbered lists (of formats.md and design.md: ``5.3``)."""
    text = (DOCS / f"{doc}.md").read_text(encoding="utf-8")
    if doc == "observed":
        return set(_ITEM.findall(text))
    found = set(_HEADING.findall(text))
    for section in _SECTION.finditer(text):
        found |= {f"{section[1]}.{item}" for item in _ITEM.findall(section[0])}
    if doc == "formats":
        found |= {f"row {number}" for number in _ROW.findall(text)}
    if doc == "design":
        found |= set(_ITEM.findall(text))  # its rules are numbered through
    return found


def _files() -> Iterator[Path]:
    for folder, pattern in (
        ("analyzer", "*.py"),
        ("tests", "*.py"),
        ("grammars", "*.lark"),
        ("sample_logs", "ORIGIN.md"),
        ("docs", "*.md"),
    ):
        yield from (ROOT / folder).rglob(pattern)


def _cited(text: str) -> Iterator[tuple[str, str]]:
    joined = re.sub(r"\n\s*(?:#|//)?\s*", " ", text)  # a citation may be wrapped
    for found in _CITED.finditer(joined):
        for row, first, last in _NUMBER.findall((found["rest"] or "").replace(". ", " ")):
            for number in (first, last):
                if number:
                    yield found["doc"], ("row " if row else "") + number.rstrip(".")


@pytest.mark.parametrize("doc", ["design", "formats", "observed", "style"])
def test_a_document_has_numbered_parts_or_examples(doc: str) -> None:
    assert _numbers(doc) or doc == "style"


def test_every_cited_section_exists() -> None:
    known = {doc: _numbers(doc) for doc in ("design", "formats", "observed", "style")}
    cited = {
        (doc, number, str(path.relative_to(ROOT)))
        for path in _files()
        for doc, number in _cited(path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 300  # the pattern still finds them
    missing = sorted(one for one in cited if one[1] not in known[one[0]])
    assert [one for one in missing if one[2] != "tests/test_docs.py"] == []


def test_a_section_that_is_not_there_is_found_missing() -> None:
    assert list(_cited("see formats.md 3.4, 9.99 and observed.md 30-32")) == [
        ("formats", "3.4"),
        ("formats", "9.99"),
        ("observed", "30"),
        ("observed", "32"),
    ]
    assert "9.99" not in _numbers("formats")

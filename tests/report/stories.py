"""Stories of the sample logs with their raw lines, hostile results, and the lint of citations."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from analyzer.report.plain import plain
from analyzer.report.redact import NEVER_TEXT
from analyzer.report.request import ReportContext
from analyzer.report.sections import claims
from analyzer.report.story.telling import place_of
from analyzer.report.story.values import Cite, Sentence, Story
from analyzer.schema import Result
from tests.samples import analysis, cases

SAMPLES = tuple(case.name for case in cases())
MUST_CITE = frozenset({"fact", "inference"})
Lines = Sequence[Sequence[str]]

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</script></style></title></pre><svg onload=alert(1)>",
    "{{ 1234*5678 }}{% raw %}${1234*5678}<%= 1234*5678 %>{{ self.__class__ }}",
    "\n```\n# owned\n~~~\n<details>`` ` ```` `",
    "[x](javascript:alert(1)) ![p](http://evil.example/p.png) @team owner/repo#12 GH-12 :tada: $x$",
    "|a\\|b| **bold** <!-- --> &lt;b&gt; ]]> http://evil.example www.evil.example",
    "\x1b[31mred\x1b]8;;http://evil.example\x07 \u202etxt.exe\u2066 \x00 \u2028 \r\n- [ ] owned",
    "javascript:alert(1)//../../etc/passwd?x#y",
    "half \ud800 character",
    "zero\u200bwidth\u200d\u2060\ufeff\u00ad \u202e\u2067reversed\u2069 \x7f\x85 \U000e0041 <![CDATA[ ]]>",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e; %SRCROOT%/{0} {{config}}",
    "operandIndices=[0] _a_ *b* ~c~ __d__ 1. x\n===\n",
)


def sample_result(name: str) -> Result:
    """The analysis of a case."""
    return analysis(name)


@cache
def sample_lines(name: str) -> Lines:
    """The raw lines of every input of a case."""
    folder = next(case.folder for case in cases() if case.name == name)
    return [_lines(folder / one.path) for one in analysis(name).inputs]


def _lines(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode("utf-8", errors="replace").split("\n")


def context_of(lines: Lines, *, redact: bool = False) -> ReportContext:
    """A context that quotes ``lines``."""

    def excerpt(source: int, first: int, last: int) -> Sequence[str]:
        return lines[source][first - 1 : last]

    return ReportContext(excerpt=excerpt, redact=redact)


def sample_context(name: str) -> ReportContext:
    """The context of a case."""
    return context_of(sample_lines(name))


def changed(result: Result, change: Callable[[str], str]) -> Result:
    """A result with every text of the log changed."""
    return msgspec.convert(_changed(msgspec.to_builtins(result), change), Result)


def _changed(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_changed(one, change) for one in value]
    if isinstance(value, dict):
        return {key: one if key in NEVER_TEXT else _changed(one, change) for key, one in value.items()}
    return value


def hostile_context(payload: str) -> ReportContext:
    """Raw lines that are hostile too."""
    return ReportContext(excerpt=lambda source, first, last: [payload] * (last - first + 1 + source * 0))


def complaints(story: Story, lines: Lines) -> Iterator[str]:
    """The lint: claims without a citation, lines that do not exist, quotes that are not there."""
    for sentence in claims(story):
        text = "".join(part.text for part in sentence.parts)
        if sentence.kind in MUST_CITE and not sentence.cites:
            yield f"uncited: {text}"
        for cite in sentence.cites:
            problem = _problem(cite, lines)
            if problem:
                yield f"{place_of(story.inputs, cite)}: {problem}: {text}"


def _problem(cite: Cite, lines: Lines) -> str | None:
    if cite.input >= len(lines):
        return "no such input"
    if cite.line is None:
        return None
    own = lines[cite.input]
    last = cite.last_line or cite.line
    if not 1 <= cite.line <= last <= len(own):
        return "no such line"
    quoted = " ".join(own[cite.line - 1 : last])
    if cite.quote is not None and plain(cite.quote) not in plain(quoted):
        return f"{cite.quote!r} is not there"
    return None


def text_of(sentence: Sentence) -> str:
    """The words of a sentence."""
    return "".join(part.text for part in sentence.parts)

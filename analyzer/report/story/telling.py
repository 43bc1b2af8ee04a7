"""How sentences are made: parts, citations, and the names of the inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from analyzer.report.plain import plain
from analyzer.report.request import ReportContext
from analyzer.report.story.values import Cite, Detail, Paragraph, Part, Sentence
from analyzer.schema import Fault, OpRef, Result, Suspect, Value

QUOTE_CHARS = 80
QUOTE_LINES = 12  # of a fault; the appendix holds as many
NEARLY_ALL = 0.6  # of the words of a line: then it is what the fault's text was made of
CITES_SHOWN = 4  # a sentence stays readable; the result has all of them
TEXT_CHARS = 600
NAMES_KNOWN = 12
KIND_WORDS = {"ecc_error": "ECC error", "nan": "NaN"}
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}([A-Z]\w{0,60}(?:Error|Exception|Exit|Interrupt))\b")
_OWN_LINES = re.compile(r"\blines? (\d{1,12})\b")
_LINE_WORDS = re.compile(r"^line \d+: | \(line \d+\)")
_WORD = re.compile(r"\w+")
_FILE_LINE = re.compile(
    r"(?<![\w./<>-])[\w./<>-]+\.(?:py|mojo|cpp|cc|cu|cuh|h|log|txt|gz):\d+(?::\d+)?|'[^']{3,120}'"
)


class Scene(Value):
    """What a section is told from. ``names`` are texts of the log that stand inside our own words."""

    result: Result
    context: ReportContext
    detail: Detail
    inputs: tuple[str, ...]
    names: tuple[str, ...]


def scene_of(result: Result, context: ReportContext, detail: Detail) -> Scene:
    """Gather what all sections need."""
    return Scene(
        result=result, context=context, detail=detail, inputs=input_names(result), names=_known_names(result)
    )


def input_names(result: Result) -> tuple[str, ...]:
    """One name an input: the file name, with its folder where two are called the same."""
    paths = [PurePosixPath(one.path) for one in result.inputs]
    short = [path.name or str(path) for path in paths]
    names = [
        name if short.count(name) == 1 else "/".join(path.parts[-2:])
        for name, path in zip(short, paths, strict=True)
    ]
    unique = [name if names.count(name) == 1 else f"{name}#{at + 1}" for at, name in enumerate(names)]
    return tuple(plain(name) for name in unique)


def _known_names(result: Result) -> tuple[str, ...]:
    """Long names first, so that none is cut by a shorter one inside it; of long lists only the head."""
    ops = [suspect.op.name for suspect in result.suspects[:NAMES_KNOWN]]
    ops += [one.op.name for one in result.cleared.ops[:NAMES_KNOWN]]
    if result.conclusion.messenger is not None:
        ops.append(result.conclusion.messenger.name)
    faults = result.faults[:NAMES_KNOWN]
    kernels = [name for fault in faults for name in (fault.kernel, fault.reported_at.kernel) if name]
    done = result.replay
    ops += [one.name for one in (done.op, done.producer) if one is not None] if done is not None else []
    names = {name for name in (*ops, *kernels) if name}
    return tuple(sorted(names, key=lambda name: (-len(name), name)))


def root_of(result: Result) -> Fault | None:
    """The first root fault."""
    return next((fault for fault in result.faults if fault.role == "root"), None)


def accused_of(result: Result) -> Suspect | None:
    """The suspect that the conclusion names."""
    return next((one for one in result.suspects if one.rank == result.conclusion.suspect), None)


def clip(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` characters, with the rest counted."""
    over = len(text) - limit
    return text if over <= 0 else f"{text[:limit]}… ({over:,} more characters)"


def short(text: str, limit: int) -> str:
    """A label of a picture: cut without a count, since the words beside it have the whole name."""
    shown = plain(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def code(text: str, limit: int = TEXT_CHARS) -> Part:
    """Text of the log, or text to type: shown as it is, cut with a count."""
    return Part(text=plain(clip(text, limit)), code=True)


def words(text: str) -> Part:
    """Words of ours."""
    return Part(text=plain(clip(text, TEXT_CHARS)))


def strong(text: str) -> Part:
    """Words of ours that carry the sentence."""
    return Part(text=plain(clip(text, TEXT_CHARS)), strong=True)


def mixed(scene: Scene, text: str) -> tuple[Part, ...]:
    """A sentence of the analysis, with the op names, kernels and source places in it as code."""
    shown = clip(text, TEXT_CHARS)
    known = "|".join(re.escape(name) for name in scene.names)
    pattern = re.compile(f"{known}|{_FILE_LINE.pattern}" if known else _FILE_LINE.pattern)
    parts: list[Part] = []
    end = 0
    for match in pattern.finditer(shown):
        parts += [words(shown[end : match.start()]), code(match.group(), scene.detail.name_chars)]
        end = match.end()
    return tuple(part for part in (*parts, words(shown[end:])) if part.text)


def _parts(pieces: Iterable[str | Part]) -> tuple[Part, ...]:
    return tuple(words(piece) if isinstance(piece, str) else piece for piece in pieces)


def fact(*pieces: str | Part, cites: Sequence[Cite]) -> Sentence:
    """What the log says."""
    return Sentence(parts=_parts(pieces), kind="fact", cites=tuple(cites))


def inference(*pieces: str | Part, cites: Sequence[Cite]) -> Sentence:
    """What follows from the log."""
    return Sentence(parts=_parts(pieces), kind="inference", cites=tuple(cites))


def replayed(*pieces: str | Part) -> Sentence:
    """What a replay showed; no line of the log says it."""
    return Sentence(parts=tuple(part for part in _parts(pieces) if part.text), kind="replayed")


def sentence_text(sentence: Sentence) -> str:
    """The words of a sentence, for views without marks."""
    return "".join(part.text for part in sentence.parts)


def gap(*pieces: str | Part) -> Sentence:
    """What the log does not tell."""
    return Sentence(parts=_parts(pieces), kind="gap")


def omitted(rest: int, noun: str) -> tuple[Paragraph, ...]:
    """That ``rest`` of a list are not shown, if any."""
    return (Paragraph(sentences=(gap(f"{counted(rest, noun)} left out here."),)),) if rest > 0 else ()


def advice(*pieces: str | Part) -> Sentence:
    """What to do."""
    return Sentence(parts=_parts(pieces), kind="advice")


def cite_whole(result: Result) -> tuple[Cite, ...]:
    """All inputs, looked through from end to end."""
    return tuple(Cite(input=at) for at in range(min(len(result.inputs), CITES_SHOWN)))


def cite_fault(fault: Fault) -> Cite:
    """The lines of a fault. No quote: ``Fault.text`` is as it was understood, not always word for word."""
    last = fault.last_line if fault.last_line > fault.line else None
    return Cite(input=fault.input, line=fault.line, last_line=last)


def fault_as_logged(scene: Scene, fault: Fault) -> str | None:
    """What the log itself says there: the fault's text if it stands so, else the line. Null = not at hand."""
    last = min(fault.last_line, fault.line + QUOTE_LINES)
    lines = [line.strip() for line in scene.context.excerpt(fault.input, fault.line, last)]
    first = fault.text.split("\n", 1)[0].strip()
    if first and any(first in line for line in lines):
        return first
    wanted = set(_WORD.findall(fault.text))
    held = [(wanted.intersection(_WORD.findall(line)), line) for line in lines]
    near = (line for words, line in held if len(words) >= len(_WORD.findall(line)) * NEARLY_ALL > 1)
    return next(near, None) or max(held, key=lambda one: len(one[0]), default=(None, None))[1] or None


def fault_part(scene: Scene, fault: Fault, limit: int) -> Part:
    """The text of a fault: as code only where the log is known to have it so."""
    if fault is root_of(scene.result) and fault_as_logged(scene, fault) in {None, fault.text}:
        return code(fault.text, limit)
    return words(clip(fault.text, limit))


def cite_op(op: OpRef) -> tuple[Cite, ...]:
    """The launch record of an op; nothing where the log has none."""
    if op.line is None:
        return ()
    return (Cite(input=op.input, line=op.line, quote=op.name[:QUOTE_CHARS] if op.id is not None else None),)


def with_lines(scene: Scene, source: int, text: str, cites: Sequence[Cite]) -> tuple[str, tuple[Cite, ...]]:
    """A text of the analysis that says its lines itself: these are cited, and the words lose them."""
    known = scene.result.inputs[source].lines if source < len(scene.result.inputs) else 0
    lines = [int(number) for number in _OWN_LINES.findall(text) if 0 < int(number) <= known]
    if not lines:
        return text, tuple(cites)
    return _LINE_WORDS.sub("", text), cite_lines(source, list(dict.fromkeys(lines)))


def cite_lines(source: int, lines: Sequence[int]) -> tuple[Cite, ...]:
    """Single lines, the first few."""
    return tuple(Cite(input=source, line=line) for line in lines[:CITES_SHOWN])


def named(scene: Scene, op: OpRef) -> tuple[Part, ...]:
    """``name (id 302, step 9)``."""
    known = [f"id {op.id}"] if op.id is not None else []
    known += [f"step {op.step}"] if op.step is not None and op.step >= 0 else []
    tail = (words(f" ({', '.join(known)})"),) if known else ()
    return (code(op.name, scene.detail.name_chars), *tail)


def counted(number: int, noun: str) -> str:
    """``1 op``, ``2 ops``, ``2 launches``."""
    plural = "es" if noun.endswith(("s", "ch")) else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def kind_words(fault: Fault) -> str:
    """The kind for people: an error that no code explains goes by its exception."""
    if fault.kind != "unknown":
        return KIND_WORDS.get(fault.kind, fault.kind.replace("_", " "))
    named = _EXCEPTION.match(fault.text)
    return plain(named.group(1)) if named else "unexplained error"


def percent(share: float) -> str:
    """A share as a person reads it."""
    return f"{share:.0%}" if share >= 0.01 or share == 0 else "<1%"


def place_of(inputs: Sequence[str], cite: Cite) -> str:
    """``serve.log:6926`` or ``serve.log:6926-6927``; the bare name for a whole input."""
    name = inputs[cite.input] if cite.input < len(inputs) else f"input {cite.input}"
    if cite.line is None:
        return name
    return f"{name}:{cite.line}" if cite.last_line is None else f"{name}:{cite.line}-{cite.last_line}"


def places_of(inputs: Sequence[str], cites: Sequence[Cite]) -> list[str]:
    """Each place once, in order."""
    return list(dict.fromkeys(place_of(inputs, cite) for cite in cites))

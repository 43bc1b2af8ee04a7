"""Lines that prove earlier work of the device sound (design.md rule 4).

A server that prints a number computed on the device has copied it to the host, and a copy that returned
has waited for everything launched before it. A line that merely says that work was dispatched proves
nothing (observed.md 21, corpus ``step 2 dispatched``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from analyzer.model import Line
from analyzer.numbers import natural
from analyzer.schema import SourceFrame, Value

# Bounded, as each of many quotes that are never closed would read to the end.
_STRING = re.compile(r"""("(?:[^"\\]|\\.){0,250}+"|'(?:[^'\\]|\\.){0,250}+')""")
_PLACEHOLDER = re.compile(r"%[-+ #0]*+[0-9]*+(?:\.[0-9]++)?[sdifFeEgGrxX]|\{[^{}]*\}")
_UNIT = r"(?:[munµ]?s|secs?|seconds?|minutes?|min|hours?|h|%|x|[KMGT]?i?B|bytes?|\w*/s|Hz|MHz|GHz|W|C)\b"
_FLOAT = re.compile(
    rf"(?<![\w.:/-])[-+]?(?:[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?|nan|inf)(?![\w.]*[\w/:-])(?! ?(?:{_UNIT}|%))"
)
# A value that only the device can have computed, right behind its word. A deny-list of settings, sizes and
# counts can never be complete (``loss scale 65536``, ``logits shape (64, 128)``), so the form is strict.
_REAL = r"[-+]?(?:[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?|nan|inf)"
_VALUE = re.compile(
    rf"(?i)\b(?:(?:logits?|logprobs?|loss|(?:output|result) (?:sum|mean|norm))(?: is)?[ =:]+"
    rf"\[?{_REAL}(?![\w.%])"
    r"|(?:argmax|checksum|sampled token|token ids?|token_ids?)(?: is)?[ =:]+\[?-?[0-9]+(?![\w.%]))"
)
_STEP_VALUE = re.compile(rf"(?i)^(?:step|iteration|iter)[ =:#]*[0-9]+[:,]?\s+{_REAL}$")
_INTEGER = re.compile(r"(?<![\w.:/-])\[?-?[0-9]+(?![\w.:/-])")
_FRAME = re.compile(r"^[^ ]+:[0-9]+:[^ ]+$")
_OP_TEXT = ("[OP] ", ";target=", "[fused from ")  # also behind a prefix that no layer took off
_MACHINE_TEXT = ("INFO::: ", "DEBUG::: ", " ", "\t", "[GEX-")
_STEP = re.compile(r"(?i)\b(?:step|iteration|iter|batch)[ =:#]+([0-9]+)\b")
_MIN_LITERAL = 3  # letters of a template that must stand in the line


class Proof(Value):
    """A line that shows that work launched before it was sound.

    ``kind``: ``same_statement`` (the statement that met the fault printed this line earlier) or
    ``value_line`` (it prints a value read back from the device). ``number`` = the step that it names.
    """

    line: int
    kind: str
    text: str
    number: int | None


def statement_templates(frame: SourceFrame | None) -> list[re.Pattern[str]]:
    """Patterns of the lines that a source line with string literals prints.

    ``log.info("step %d logits %.4f", ...)`` gives ``step .* logits .*``. Null or short literals give none.
    """
    if frame is None or not frame.text:
        return []
    found = []
    for quoted in _STRING.findall(frame.text):
        parts = _PLACEHOLDER.split(quoted[1:-1])
        letters = sum(char.isalpha() for part in parts for char in part)
        if letters >= _MIN_LITERAL:
            found.append(re.compile(".*".join(re.escape(part) for part in parts)))
    return found


def prints_read_back_value(text: str) -> bool:
    """Whether a line shows a value that only the device can have computed.

    ``logits 64.0``, ``loss=2.31``, ``token ids [5, 7]``, ``argmax 17``, or just a step and a number.
    """
    if _is_machine_text(text):
        return False
    return bool(_VALUE.search(text) or _STEP_VALUE.search(text.strip()))


def _is_machine_text(text: str) -> bool:
    return (
        text.startswith(_MACHINE_TEXT) or any(part in text for part in _OP_TEXT) or bool(_FRAME.match(text))
    )


def skeleton(text: str) -> str:
    """A line without its numbers: lines of one statement have the same one."""
    return re.sub(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "#", text)


def find_statement(lines: Sequence[Line], templates: Sequence[re.Pattern[str]]) -> Iterator[Proof]:
    """Earlier lines of the very statement that met the fault, last first."""
    for line in reversed(lines):
        text = line.text
        if _is_machine_text(text) or not any(template.search(text) for template in templates):
            continue
        if _INTEGER.search(text) or _FLOAT.search(text):
            yield Proof(line=line.number, kind="same_statement", text=text.strip(), number=_step_number(text))


def find_values(lines: Sequence[Line]) -> Iterator[Proof]:
    """Lines that show a value of the device, last first."""
    for line in reversed(lines):
        if prints_read_back_value(line.text):
            yield Proof(
                line=line.number, kind="value_line", text=line.text.strip(), number=_step_number(line.text)
            )


def find_proofs(lines: Sequence[Line], templates: Sequence[re.Pattern[str]]) -> Iterator[Proof]:
    """Proofs among lines of one process, last first; where the statement printed any, no others count."""
    found = list(find_statement(lines, templates))
    yield from found or find_values(lines)


def _step_number(text: str) -> int | None:
    found = _STEP.search(text)
    return natural(found.group(1)) if found else None

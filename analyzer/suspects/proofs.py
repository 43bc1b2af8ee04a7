"""Lines that prove earlier work of the device sound (design.md rule 4).

A server that prints a number computed on the device has copied it to the host, and a copy that returned
has waited for everything launched before it. A line that merely says that work was dispatched proves
nothing (observed.md 21, corpus ``step 2 dispatched``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from analyzer.model import Line
from analyzer.schema import SourceFrame, Value

_STRING = re.compile(r"""([fFrRbBuU]{0,2})("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_PLACEHOLDER = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[sdifFeEgGrxX]|\{[^{}]*\}")
_UNIT = r"(?:[munµ]?s|secs?|seconds?|minutes?|min|hours?|h|%|x|[KMGT]?i?B|bytes?|\w*/s|Hz|MHz|GHz|W|C)\b"
_FLOAT = re.compile(
    rf"(?<![\w.:/-])[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|nan|inf)(?![\w.]*[\w/:-])(?! ?(?:{_UNIT}|%))"
)
# Words for what only the device can have computed. Counts (``output tokens: 512``) are the host's.
_VALUE_WORDS = re.compile(
    r"(?i)\b(logits?|logprobs?|loss|argmax|sampled|token(?:_id)?s?(?= ids?\b|=|:? \[?\d)|checksum|result|"
    r"score|output (?:sum|mean|norm)|sum|mean|norm)\b"
)
_INTEGER = re.compile(r"(?<![\w.:/-])\[?-?\d+(?![\w.:/-])")
_NO_READ_BACK = re.compile(
    r"(?i)\b(dispatch\w*|launch\w*|enqueue\w*|submitt?\w*|schedul\w*|queue\w*|load\w*|compil\w*|throughput|"
    r"latency|elapsed|took|usage|utili[sz]ation|memory|cache hit|version|listening|GET|POST|prompt|received|"
    r"request|input|context|(?:max|num|total)_?\w*|wait\w*|retry|timeout|temperature)\b"
)
_MACHINE_TEXT = ("[OP] ", "INFO::: ", "DEBUG::: ", ";target=", "[fused from ", " ", "\t", "[GEX-")
_STEP = re.compile(r"(?i)\b(?:step|iteration|iter|batch)[ =:#]+(\d+)\b")
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
    for _prefix, quoted in _STRING.findall(frame.text):
        parts = _PLACEHOLDER.split(quoted[1:-1])
        letters = sum(char.isalpha() for part in parts for char in part)
        if letters >= _MIN_LITERAL:
            found.append(re.compile(".*".join(re.escape(part) for part in parts)))
    return found


def prints_read_back_value(text: str) -> bool:
    """Whether a line shows a value that only the device can have computed.

    A number beside a word such as ``logits``, ``loss`` or ``token``, or a number with a fraction (no time,
    size or rate) in a line that counts steps. Settings and versions are numbers too, so a number alone is
    not enough; neither is a line that speaks of dispatching, loading, requests or statistics.
    """
    if text.startswith(_MACHINE_TEXT) or _NO_READ_BACK.search(text):
        return False
    if _VALUE_WORDS.search(text):
        return bool(_FLOAT.search(text) or _INTEGER.search(text))
    return bool(_STEP.search(text) and _FLOAT.search(text))


def find_proofs(lines: Sequence[Line], templates: Sequence[re.Pattern[str]]) -> Iterator[Proof]:
    """Proofs among lines of one process, last first."""
    for line in reversed(lines):
        text = line.text
        if not text or text.startswith(_MACHINE_TEXT):
            continue
        same = any(template.search(text) for template in templates)
        if same and (prints_read_back_value(text) or _FLOAT.search(text) or _INTEGER.search(text)):
            yield Proof(line=line.number, kind="same_statement", text=text.strip(), number=_step_number(text))
        elif prints_read_back_value(text):
            yield Proof(line=line.number, kind="value_line", text=text.strip(), number=_step_number(text))


def _step_number(text: str) -> int | None:
    found = _STEP.search(text)
    return int(found.group(1)) if found else None

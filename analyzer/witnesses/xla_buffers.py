"""The allocation summary below an out-of-memory error of XLA (formats.md 3.4, 3.14). No witness by itself.

``BufferAssignment OOM Debugging.`` lists what the compiled step needs, and its largest buffers first, each
with the Python line that made it.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.witnesses.forms import read_line
from analyzer.witnesses.host_error import Around

_HEAD = "BufferAssignment OOM Debugging"
_HEAD_LINES = 4  # below the error; the traceback of another thread can stand between
_FIRST = "Buffer 1:"
_SECOND = "Buffer 2:"
_RULES = {
    "stat": ("allocation:",),
    "size": ("Size: ",),
    "operator": ("Operator: ",),
    "label": ("XLA Label: ",),
    "shape": ("Shape: ", "Subshape: "),
}


def read_buffers(around: Around) -> str:
    """What the summary says, for a reader; empty = there is none.

    Args:
        around: Of the error; its ``used`` gets the lines that were read.
    """
    found = [at for at, (_, text) in enumerate(around.after[:_HEAD_LINES]) if text.strip().startswith(_HEAD)]
    if not found:
        return ""
    around.used.add(around.after[found[0]][0])
    stats: dict[str, str] = {}
    buffer: dict[str, str] = {}
    for number, text in around.after[found[0] + 1 :]:
        line = text.strip()
        if line.startswith(_SECOND) or _is_foreign(line, buffer):
            break
        around.used.add(number)
        _take(line, stats, buffer)
    return "; ".join(part for part in (_needs(stats), _largest(buffer)) if part)


def _is_foreign(line: str, buffer: Mapping[str, str]) -> bool:
    """A line that the summary does not have ends it."""
    if not line or line.startswith(("BufferAssignment stats:", "Peak buffers:", _FIRST, "=====")):
        return bool(buffer) and not line
    return "fragmentation:" not in line and not any(
        head in line for heads in _RULES.values() for head in heads
    )


def _take(line: str, stats: dict[str, str], buffer: dict[str, str]) -> None:
    for rule, heads in _RULES.items():
        if not any(head in line for head in heads) or (fields := read_line("xla", rule, line)) is None:
            continue
        if rule == "stat":
            stats[fields["PART"][0].strip()] = fields["AMOUNT"][0]
        else:
            buffer.update({key: found[0].strip() for key, found in fields.items()})


def _needs(stats: Mapping[str, str]) -> str:
    total, held = stats.get("total"), stats.get("preallocated temp")
    if total is None:
        return ""
    return f"the step needs {total} in all" + (f", {held} of it for temporaries" if held else "")


def _largest(buffer: Mapping[str, str]) -> str:
    if "AMOUNT" not in buffer:
        return ""
    shape = f" {buffer['ARRAY']}" if "ARRAY" in buffer else ""
    made = f" of {buffer['OP']}" if "OP" in buffer else ""
    file, line = buffer.get("FILE"), buffer.get("LINE")
    where = f", made at {file.rsplit('/', 1)[-1]}:{line}" if file and line else ""
    return f"its largest buffer is {buffer['AMOUNT']}{shape}{made}{where}"

"""The stacks of Python's fault handler (formats.md 3.21). No witness by itself.

They begin with the innermost frame, other than tracebacks. Of several threads the one called current died.
"""

from __future__ import annotations

import msgspec

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.numbers import need_integer
from analyzer.schema import SourceFrame
from analyzer.witness import Fetch

_LINES = 1_200  # twenty threads of a server
_FOREIGN = 12  # lines of other writers in a row
_THREADS = ("Thread 0x", "Current thread", "Stack (most recent call first)")
_OTHERS = ("<no Python frame>", "...", "Extension modules:", "Binary file ", "<truncated rest of calls>")


class Stack(msgspec.Struct):
    """Frames of the thread that died, innermost first, and the lines of all threads."""

    frames: list[SourceFrame] = []
    lines: list[int] = []


def read_stack(fetch: Fetch, line: int, process: str) -> Stack:
    """The stacks below ``Fatal Python error:``.

    Args:
        fetch: Reads the lines.
        line: Of that head.
        process: Its writer.
    """
    stack = Stack()
    threads: dict[str, list[SourceFrame]] = {}
    now = ""
    foreign = 0
    for one in fetch.after(line, process, _LINES):
        text = one.text.strip()
        if text.startswith(_THREADS):
            now = "current" if not text.startswith("Thread") else text
            threads.setdefault(now, [])
        elif now and (frame := _frame(text)) is not None:
            threads[now].append(frame)
        elif not text.startswith(_OTHERS):
            foreign += bool(text)
            if foreign > _FOREIGN or text.startswith("Fatal Python error"):
                break
            continue
        foreign = 0
        stack.lines.append(one.number)
        if text.startswith("Extension modules:"):
            break
    stack.frames = threads.get("current") or []
    return stack


def _frame(text: str) -> SourceFrame | None:
    """``File "x.py", line 1045 in load``."""
    if not text.startswith('File "'):
        return None
    try:
        path, number, *function = map(token_text, parse("process_death", text, "frame").children)  # type: ignore[arg-type]
        line = need_integer(number)
    except GrammarError:
        return None
    name = function[0].strip() if function else ""
    return SourceFrame(file=path[1:-1], line=line, function=name)

"""Texts of a plan or a log inside of a written program: as literals, and in comments without what ends them.

A name may hold anything: line ends of all kinds, quotes, backslashes, characters that are shown as others.
"""

from __future__ import annotations

import keyword

_LONGEST = 400  # characters of one line of prose


def plain(text: object) -> str:
    """One line of prose for a comment: what is not printable (all line ends are) as its escape."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def docstring(text: str) -> str:
    """A docstring literal of several lines, each as ``plain`` gives it."""
    lines = [plain(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"""' + "\n".join(line.replace('\\"', '"') if _is_calm(line) else line for line in lines) + '\n"""'


def _is_calm(line: str) -> bool:
    """Whether the quotes of a line can stand as they are: no two side by side, none at its ends."""
    bare = line.replace('\\"', '"')
    return '""' not in bare and not bare.startswith('"') and not bare.endswith('"')


def is_name(text: str) -> bool:
    """Whether a text can be written as the name of an argument or a function."""
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)


def keywords(given: dict[str, str]) -> list[str]:
    """Named arguments of a call from their names and written values; odd names as keys of a dictionary."""
    named = [f"{name}={value}" for name, value in given.items() if is_name(name)]
    odd = [f"{name!a}: {value}" for name, value in given.items() if not is_name(name)]
    return [*named, *([f"**{{{', '.join(odd)}}}"] if odd else [])]

"""Every compiled pattern and every terminal of the package, found by itself: a new witness is covered."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import analyzer
from analyzer.grammar import data_path, load
from analyzer.schema import Value

_CALLS = ("match", "search", "fullmatch", "sub", "subn", "finditer", "findall", "split")
_OPTIONAL = ("torch", "max", "ray")  # hooks import what only the recorded program has
_DEEP = 6  # of containers in containers


class Found(Value):
    """A pattern, how the package uses it, and where it stands."""

    where: str
    pattern: str
    flags: int
    modes: tuple[str, ...]


def patterns() -> list[Found]:
    """The distinct patterns of all modules, of literal ``re`` calls, and of all terminals."""
    found = [*_of_modules(), *_of_calls(), *_of_grammars()]
    distinct: dict[tuple[str, int], Found] = {}
    for one in found:
        key = (one.pattern, one.flags)
        known = distinct.get(key)
        modes = tuple(sorted({*one.modes, *(known.modes if known else ())}))
        distinct[key] = msgspec.structs.replace(known or one, modes=modes)
    searched = ("search",)
    return [msgspec.structs.replace(one, modes=one.modes or searched) for one in distinct.values()]


def grammars() -> list[tuple[str, list[str]]]:
    """Each grammar with the names of its rules: a witness begins with any of them."""
    paths = sorted(data_path("grammars").glob("*.lark"))
    rules = [re.findall(r"(?m)^[?!]?([a-z][a-z0-9_]*)(?:\.\d+)?\s*:", path.read_text()) for path in paths]
    return [(path.stem, names) for path, names in zip(paths, rules, strict=True) if names]


def _of_modules() -> Iterator[Found]:
    for info in pkgutil.walk_packages(analyzer.__path__, "analyzer."):
        if info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError as error:
            if (error.name or "").split(".")[0] not in _OPTIONAL:
                raise
            continue
        for name, value in list(vars(module).items()):
            for one in _inside(value, info.name, _DEEP):
                yield Found(
                    where=f"{info.name}.{name}",
                    pattern=one.pattern,
                    flags=one.flags,
                    modes=_modes(str(module.__file__), name),
                )


def _inside(value: Any, module: str, deep: int) -> Iterator[re.Pattern[str]]:
    """Patterns in a global: itself, in containers, in the fields of values, in classes of the module."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
        return
    if deep == 0 or isinstance(value, str | bytes | int | float | None):
        return
    inner: Any = ()
    if isinstance(value, Mapping):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    elif isinstance(value, msgspec.Struct):
        inner = [getattr(value, field) for field in value.__struct_fields__]
    elif _is_own(value, module):
        inner = list(vars(value).values())
    elif callable(value) and getattr(value, "__module__", None) == module and hasattr(value, "__closure__"):
        inner = [*(value.__defaults__ or ()), *(cell.cell_contents for cell in value.__closure__ or ())]
    for one in inner:
        yield from _inside(one, module, deep - 1)


def _is_own(value: Any, module: str) -> bool:
    """Whether it is a class of the module or an object of a class of the package."""
    if isinstance(value, type):
        return value.__module__ == module
    return type(value).__module__.startswith("analyzer") and hasattr(value, "__dict__")


@cache
def _calls() -> dict[str, tuple[set[str], dict[str, set[str]]]]:
    """For each module: the names that it imports or has, and which calls it makes on which name."""
    found = {}
    root = Path(str(analyzer.__file__)).parent
    for path in root.rglob("*.py"):
        source = path.read_text()
        calls: dict[str, set[str]] = {}
        for name, call in re.findall(rf"\b(_?[A-Za-z]\w*)(?:\[[^\]\n]*\])?\.({'|'.join(_CALLS)})\(", source):
            calls.setdefault(name, set()).add(call)
        found[str(path)] = (set(re.findall(r"\w+", source)), calls)
    return found


def _modes(path: str, name: str) -> tuple[str, ...]:
    """How a global is called where it stands and where it is imported.

    One that is handed on is called under another name: as any local name of its module is.
    """
    words = [
        (names, calls) for at, (names, calls) in _calls().items() if at == path or not name.startswith("_")
    ]
    direct = {call for _, calls in words for call in calls.get(name, ())}
    handed = {
        call
        for at, (names, calls) in _calls().items()
        if at == path and names
        for owner, made in calls.items()
        if owner.lstrip("_").islower() and owner != "re"
        for call in made
    }
    return tuple(sorted(direct or handed or {"search"}))


def _of_calls() -> Iterator[Found]:
    """Literal patterns of ``re.match(...)`` and the like in functions.

    Expressions of Polars are not here: its engine is linear by construction.
    """
    root = Path(str(analyzer.__file__)).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            owner, first = node.func.value, node.args[0]
            called = (
                isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in (*_CALLS, "compile")
            )
            if called and isinstance(first, ast.Constant) and isinstance(first.value, str):
                modes = () if node.func.attr == "compile" else (node.func.attr,)  # of a global: told there
                where = f"{path.relative_to(root)}:{node.lineno}"
                yield Found(
                    where=where, pattern=first.value, flags=re.compile(first.value).flags, modes=modes
                )


def _of_grammars() -> Iterator[Found]:
    for name, rules in grammars():
        for rule in rules:
            for terminal in load(name, rule).terminals:
                text = terminal.pattern.to_regexp()
                flags = re.compile(text).flags
                yield Found(where=f"{name}.lark {terminal.name}", pattern=text, flags=flags, modes=("match",))

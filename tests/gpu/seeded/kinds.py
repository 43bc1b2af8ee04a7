"""The kinds of faults of ``program.py``, told without torch."""

from __future__ import annotations

import ast
from pathlib import Path


def _kinds() -> tuple[str, ...]:
    tree = ast.parse(Path(__file__).with_name("program.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "KINDS":
            comprehension = node.value
            assert isinstance(comprehension, ast.DictComp)
            listed = comprehension.generators[0].iter
            assert isinstance(listed, ast.Tuple)
            return tuple(one.id for one in listed.elts if isinstance(one, ast.Name))
    raise AssertionError("program.py has no KINDS")


KINDS = _kinds()

"""The user's file of functions, read without executing it: the parent runs no code of the user's."""

from __future__ import annotations

import ast
from pathlib import Path

from analyzer.errors import UsageError


def names_of_functions(path: Path) -> frozenset[str]:
    """Names of ops that a file executes: its functions, and the keys of its dictionary ``OPS``.

    Raises:
        UsageError: It is no Python file.
    """
    try:
        module = ast.parse(path.read_bytes(), filename=str(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"--ops {path}: cannot be read as Python: {error}") from error
    names = {one.name for one in module.body if isinstance(one, ast.FunctionDef)}
    for one in module.body:
        value = one.value if isinstance(one, (ast.Assign, ast.AnnAssign)) else None
        targets = one.targets if isinstance(one, ast.Assign) else []
        targets = [one.target] if isinstance(one, ast.AnnAssign) else targets
        if isinstance(value, ast.Dict) and any(isinstance(t, ast.Name) and t.id == "OPS" for t in targets):
            names |= {key.value for key in value.keys if isinstance(key, ast.Constant)}  # type: ignore[misc]
    return frozenset(names)

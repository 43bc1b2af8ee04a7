"""Names of kernels as tools print them: without parameters, without templates. No witness by itself."""

from __future__ import annotations

_RETURNS = "void "


def without_parameters(symbol: str) -> str:
    """``void k<int>(float *, int)`` as ``k<int>``: how other witnesses print the same kernel."""
    name = symbol.strip().removeprefix(_RETURNS)
    if not name.endswith(")"):
        return name
    at = _opened_at(name)
    return name[:at] if at > 0 else name


def base_name(symbol: str) -> str:
    """``ns::k<int>`` as ``k``."""
    plain = symbol.strip().removeprefix(_RETURNS).partition("<")[0].partition("(")[0]
    return plain.rpartition("::")[2] or symbol


def _opened_at(text: str) -> int:
    """Where the bracket that the last character closes was opened; -1 = nowhere."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] == ")":
            depth += 1
        elif text[at] == "(":
            depth -= 1
            if depth == 0:
                return at
    return -1

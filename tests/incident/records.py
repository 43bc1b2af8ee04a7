"""Fault records for the tests of roles: what matters is said, the rest is the same for all."""

from __future__ import annotations

from typing import Any

from analyzer.model import FaultRecord

SECOND_NS = 10**9


def fault(line: int, kind: str = "illegal_address", **more: Any) -> FaultRecord:
    """A report of the host at ``line`` of the first input."""
    known: dict[str, Any] = {
        "source": 0,
        "process": "",
        "line": line,
        "last_line": line,
        "block_first": line,
        "text": f"{kind} text",
        "witness": "c10",
        "site": "sync",
    }
    return FaultRecord(**{**known, "kind": kind, **more})


def at(seconds: float, clock: str = "epoch") -> dict[str, Any]:
    """A time of the log."""
    return {"time_ns": int(seconds * SECOND_NS), "clock": clock}

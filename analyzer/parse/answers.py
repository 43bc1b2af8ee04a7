"""Access lines of servers: a request that was answered (formats.md 6)."""

from __future__ import annotations

ANSWERED = " 200 OK"
# Answered by the HTTP server alone, also where the engine behind it is dead.
NO_WORK = ("/health", "/metrics", "/ping", "/ready", "/live", "/version")


def is_answer(text: str) -> bool:
    """Whether a line tells that work asked for was done."""
    return ANSWERED in text and not any(path in text for path in NO_WORK)

"""Access lines of servers: a request that was answered (formats.md 6)."""

from __future__ import annotations

import re

ANSWERED = " 200 OK"
# Answered by the HTTP server alone, also where the engine behind it is dead.
NO_WORK = ("/health", "/metrics", "/ping", "/ready", "/live", "/version")


def is_answer(text: str) -> bool:
    """Whether a line tells that work asked for was done."""
    return ANSWERED in text and not any(path in text for path in NO_WORK)


# A request that asked for something wrong; the server is well.
_REFUSED = re.compile(r'" 4[0-9]{2} (?:Bad Request|Unprocessable|Not Found|Payload Too Large|Request Entity)')


def is_refusal(text: str) -> bool:
    """Whether a line tells that a request was answered with its own mistake."""
    return _REFUSED.search(text) is not None

"""What the stamps of the cases mean, as the envelope tells it: ``time_ns`` and ``clock``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Case = tuple[str, str, str, dict[str, Any]]  # raw line, text, envelope, what else is known

DAY_NS = 86_400 * 10**9


def epoch(text: str, nanos: int = 0) -> dict[str, Any]:
    """A clock with a full date; without zone it counts as UTC."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return {"time_ns": int(moment.timestamp()) * 10**9 + nanos, "clock": "epoch"}


def no_year(day_of_year: int, hms: str, nanos: int = 0) -> dict[str, Any]:
    """A clock without year; 1 January is day 0."""
    return {"time_ns": day_of_year * DAY_NS + no_date(hms)["time_ns"] + nanos, "clock": "no_year"}


def no_date(hms: str, nanos: int = 0) -> dict[str, Any]:
    """A clock that shows the time of day."""
    h, m, s = (int(part) for part in hms.split(":"))
    return {"time_ns": (h * 3600 + m * 60 + s) * 10**9 + nanos, "clock": "no_date"}


JAN_1, FEB_19, NOV_3, NOV_18, NOV_21, JUN_26, JUN_29 = 0, 49, 306, 321, 324, 176, 179

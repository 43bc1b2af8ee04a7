"""What a replay found, under the names that this package uses."""

from analyzer.replay_result import (
    AttemptOutcome,
    BlamedOp,
    Comparison,
    PlaceKind,
    ReplayAttempt,
    Rung,
    VerdictName,
)
from analyzer.replay_result import (
    Replay as ReplayReport,
)

__all__ = [
    "AttemptOutcome",
    "BlamedOp",
    "Comparison",
    "PlaceKind",
    "ReplayAttempt",
    "ReplayReport",
    "Rung",
    "VerdictName",
]

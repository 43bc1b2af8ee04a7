"""What a tool reported in a log in which nothing failed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.model import FaultRecord
from analyzer.schema import Conclusion

_SHOWN = 4


def with_advised(conclusion: Conclusion, records: Sequence[FaultRecord]) -> Conclusion:
    """The conclusion of a log without a root fault names what a tool reported in it."""
    advised = [record for record in records if record.advice]
    if not advised:
        return conclusion
    notes = [f"line {one.line}: {one.witness} reports: {one.text}" for one in advised[:_SHOWN]]
    if len(advised) > _SHOWN:
        notes.append(f"{len(advised) - _SHOWN} more such reports")
    return msgspec.structs.replace(
        conclusion,
        statement="No fault found that ended the program: a tool reports warnings and handled errors.",
        notes=[*notes, *conclusion.notes],
    )

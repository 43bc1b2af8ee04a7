"""Reports that tell of no failure by themselves: a tool reports what a program handles, or warns.

compute-sanitizer reports each call that returns an error (formats.md 3.18); programs try what the device may
not be able to do, and go on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analyzer.model import FaultRecord

REASON = "a report of a tool: nothing shows that the program failed of it"


def with_backed(records: Sequence[FaultRecord]) -> list[FaultRecord]:
    """The faults; a report is a fault like others where the program itself failed with that code.

    Out of memory is seldom told again in the same words: there any failure of the program will do.
    """
    own = [record for record in records if not record.advice]
    codes = {(record.source, record.code) for record in own if record.code is not None}
    failed = {record.source for record in own}
    return [
        msgspec.structs.replace(record, advice=False)
        if record.advice
        and (
            (record.source, record.code) in codes
            or (record.kind == "out_of_memory" and record.source in failed)
        )
        else record
        for record in records
    ]

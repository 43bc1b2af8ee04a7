"""Every line of the inputs is counted once (design.md 3)."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.ingest.load import Loaded
from analyzer.readings import Readings
from analyzer.schema import Accounting


def account(loaded: Sequence[Loaded], readings: Readings) -> Accounting:
    """Divide all lines into record heads, record bodies, losses and the ignored rest.

    A line that is several things counts as the first of: op head, parsed, body of a record, unrecognised.
    """
    total = sum(one.total_lines for one in loaded)
    parsed = continuation = unrecognised = 0
    for one in loaded:
        source = one.source.index
        heads = int(one.ops["line"].n_unique())
        parsed += heads + len(readings.parsed[source])
        continuation += one.body_lines + len(readings.continuation[source])
        unrecognised += len(readings.unrecognised[source])
    return Accounting(
        total_lines=total,
        parsed=parsed,
        continuation=continuation,
        unrecognised=unrecognised,
        ignored=total - parsed - continuation - unrecognised,
    )

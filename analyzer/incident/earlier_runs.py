"""Several crashes in one log: a server that was started again begins anew, with a sound device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from analyzer.incident.incident import Change, Incident, RoleDecision, Say, SetRole
from analyzer.incident.restarts import restart_lines
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord
from analyzer.timeline.processes import owners_of
from analyzer.traits import is_death, is_sticky, is_victim


def earlier_runs(incident: Incident) -> Iterator[Change]:
    """What failed before the last restart cannot have caused what failed after it.

    A sticky error ends with its process. The last crash is the one that counts, unless the log is sound after
    the restart, or only a victim speaks there. A run begins where op ids begin again, in a log of one
    process, and where servers and launchers say that they start.
    """
    known = incident.known
    restart = _last_restart(known)
    earlier = [] if restart is None else _before(known, *restart)
    if restart is None or not earlier or set(incident.compared) <= set(earlier):
        return
    line = restart[1]
    reason = f"an earlier crash: the process was started again at line {line}"
    role = RoleDecision(role="bystander", reason=reason, lines=(restart,), aside=True)
    for index in earlier:
        yield SetRole(index=index, role=role)
    first = known.records[earlier[0]].line
    yield Say(text=f"the log holds an earlier crash too (line {first}), before the restart at line {line}")


def _last_restart(known: Knowledge) -> tuple[int, int] | None:
    """Source and line of the last restart that a fault follows; null = none is known."""
    found = [
        at for at in (*_restarts_of_ops(known), *restart_lines(known)) if _fails_after(known.records, *at)
    ]
    return max(found, key=lambda at: at[1], default=None)


def _fails_after(records: Sequence[FaultRecord], source: int, line: int) -> bool:
    """Whether something fails by itself at or below a line."""
    return any(
        one.source == source
        and one.line >= line
        and (is_sticky(one) or is_death(one) or one.kind != "unknown")
        and not (one.relayed or one.teardown or is_victim(one))
        for one in records
    )


def _restarts_of_ops(known: Knowledge) -> list[tuple[int, int]]:
    """Source and first launch line of each run but the first; none where several processes have ops."""
    ops = known.timeline.ops
    if known.timeline.untagged_writers or len(owners_of(ops)) != 1 or ops["run"].n_unique() < 2:
        return []
    begins = ops.group_by("run").agg(pl.col("launch_line").min()).sort("run")["launch_line"].slice(1)
    return [(int(ops["source"][0]), int(line)) for line in begins]


def _before(known: Knowledge, source: int, line: int) -> list[int]:
    """Faults of that input above that line."""
    return [index for index, one in enumerate(known.records) if one.source == source and one.last_line < line]

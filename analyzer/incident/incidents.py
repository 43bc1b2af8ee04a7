"""Several crashes in one log: a server that was started again begins anew, with a sound device."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analyzer.incident.exit_noise import exit_noise
from analyzer.incident.restarts import restart_lines
from analyzer.incident.roles import RoleDecision, assign_roles
from analyzer.incident.survived import survived_beside
from analyzer.knowledge import Knowledge
from analyzer.model import FaultRecord
from analyzer.timeline.processes import owners_of
from analyzer.traits import is_death, is_sticky, is_victim


def roles_of_incidents(known: Knowledge) -> tuple[list[RoleDecision], list[str]]:
    """Roles of all faults, those of earlier runs as bystanders, and notes about them.

    A sticky error ends with its process, so what failed before the last restart cannot have caused what
    failed after it. The last incident is the one told about; a log that is sound after a restart still tells
    about the crash before it, and so does one in which only a victim speaks after it. Runs are told by op ids
    that begin again, in a log of one process, and by what servers and launchers print when they start. What
    a process survived is beside the failure of another.

    Args:
        known: Faults in the order of inputs and lines.
    """
    decisions = {**survived_beside(known), **exit_noise(known)}
    restart = _last_restart(known)
    earlier = [] if restart is None else _before(known, *restart)
    notes = []
    standing = [index for index in range(len(known.records)) if index not in {*earlier, *decisions}]
    if restart is not None and earlier and standing:
        line = restart[1]
        reason = f"an earlier crash: the process was started again at line {line}"
        decisions.update((index, RoleDecision(role="bystander", reason=reason)) for index in earlier)
        first = known.records[earlier[0]].line
        notes = [f"the log holds an earlier crash too (line {first}), before the restart at line {line}"]
    left = [index for index in range(len(known.records)) if index not in decisions]
    decisions.update(zip(left, assign_roles([known.records[index] for index in left]), strict=True))
    return [decisions[index] for index in range(len(known.records))], notes


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

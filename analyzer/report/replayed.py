"""What an op replay executed: one sentence for the reports, a table for ``--timeline``."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analyzer.replay_result import Replay, ReplayedOp
from analyzer.report.plain import plain
from analyzer.report.timeline_table import duration

OPS_SHOWN = 20
_FIDELITY = {"recorded": "recorded values", "statistics": "the recorded range", "made": "made values"}


def replayed_text(replay: Replay) -> str | None:
    """How many ops ran, with which inputs, how long; null = it replayed no single ops."""
    ran = [one for one in replay.ops if one.outcome != "not_run"]
    if not ran:
        return None
    parts = [f"{_count(len(ran))} of {len(replay.ops)} executed by themselves"]
    counts = [(word, sum(one.fidelity == name for one in ran)) for name, word in _FIDELITY.items()]
    parts.append("inputs: " + ", ".join(f"{word} {number}" for word, number in counts if number))
    timed = [one for one in ran if one.device_ns is not None]
    if timed:
        total = sum(one.device_ns or 0 for one in timed)
        longest = max(timed, key=lambda one: one.device_ns or 0)
        told = f"longest {longest.name} {duration(longest.device_ns)}"
        parts.append(f"{duration(total)} in all by {_clock(timed)}, {told}")
    if replay.shrunk_to is not None:
        parts.append(f"shrunk to {_count(len(replay.shrunk_to))}")
    return "; ".join(parts)


def render_replayed(replay: Replay, *, width: int, color: bool) -> str:
    """The replayed ops by time. These are no times of the log, and stand by themselves.

    Args:
        replay: With its ops.
        width: Columns.
        color: Whether colour codes may be used.
    """
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False)
    timed = [one for one in replay.ops if one.device_ns is not None]
    basis = f"times by {_clock(timed)}, each op by itself" if timed else "no op ran through"
    console.print(Text(f"Replayed: {_count(len(replay.ops))}; {basis}: not the times of the log"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(("op", "id", "step", "inputs", "outcome", "time")):
        table.add_column(head, justify="right" if place in {1, 2, 5} else "left", overflow="fold")
    order = sorted(replay.ops, key=lambda one: (-(one.device_ns or 0), one.number))
    for one in order[:OPS_SHOWN]:
        table.add_row(
            Text(plain(one.name)),
            "" if one.log_id is None else str(one.log_id),
            "" if one.step is None else str(one.step),
            _FIDELITY[one.fidelity],
            one.outcome.replace("_", " "),
            duration(one.device_ns),
        )
    console.print(table)
    if len(replay.ops) > OPS_SHOWN:
        console.print(Text(f"and {len(replay.ops) - OPS_SHOWN} more ops"))
    return out.getvalue()


def _clock(timed: Sequence[ReplayedOp]) -> str:
    on_device = sum(one.on_device for one in timed)
    if on_device == len(timed):
        return "device events"
    return "the host's clock" if not on_device else "device events, some by the host's clock"


def _count(number: int) -> str:
    return f"{number} op{'' if number == 1 else 's'}"

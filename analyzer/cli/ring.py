"""Rings of the PyTorch op log as inputs: what a crashed process left where nobody wrote its log."""

from __future__ import annotations

from pathlib import Path

from analyzer.ingest.source import BinaryFormat
from analyzer.record.ops.ring import MAGIC

_SHOWN = 3


def _render(path: Path) -> tuple[bytes, str]:
    """The op log of a ring with its stamps, and what of it had not returned.

    Raises:
        InputError: It is broken, of another version, or holds no op.
    """
    from analyzer.errors import InputError
    from analyzer.record.ops.dump import read_ring, render_events
    from analyzer.record.stamp import stamp_lines

    ring = read_ring(path)
    if not ring.ops:
        raise InputError(f"{path}: a ring of ops without any op: the process ended before its first one")
    data = b"".join(stamp_lines(text + b"\n", ns, "stderr") for ns, text in render_events(ring.ops))
    note = f"ring of process {ring.pid}: its last {len(ring.ops)} ops, shown as their op log"
    left = [f"{op.name} (id {op.id})" for op in ring.ops if op.done_ns is None]
    if left:
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        note += f"; not returned when it ended: {', '.join(left[-_SHOWN:])}{more}"
    return data, f"{note}. What the process printed is not in it: give its log too"


RING = BinaryFormat(magic=MAGIC, render=_render)
